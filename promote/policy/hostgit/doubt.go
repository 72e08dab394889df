package hostgit

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// doubt is a configured command whose words do not show which files it executes. A change of any file that these
// words can name, at any place, counts as a change of the command.
type doubt struct {
	key     string
	names   [][]string // path components that it may name; the last one with or without an extension
	modules bool       // a Python interpreter that finds modules at the top of the tree
	blind   bool       // its words name no file, and a landing runs it
}

// runners are commands that read from files of the tree what to run.
var runners = map[string][]string{
	"make": {"makefile", "gnumakefile"}, "gmake": {"makefile", "gnumakefile"},
	"npm": {"package.json", ".npmrc", "node_modules"}, "npx": {"package.json", ".npmrc", "node_modules"},
	"pnpm": {"package.json", ".npmrc", "node_modules"}, "bunx": {"package.json", "node_modules"}, "bun": {"package.json", "node_modules", "bunfig"},
	"yarn":  {"package.json", ".yarnrc", ".yarn", ".pnp", "node_modules"},
	"cargo": {"cargo", "build.rs", ".cargo"}, "go": {"go.mod", "go.work"}, "just": {"justfile", ".justfile"}, "task": {"taskfile"},
	"rake": {"rakefile"}, "bundle": {"gemfile"}, "gradle": {"build.gradle", "settings.gradle"}, "mvn": {"pom.xml", ".mvn"},
	"tox": {"tox.ini", "pyproject.toml"}, "poetry": {"pyproject.toml"}, "uv": {"pyproject.toml", "uv.toml"}, "uvx": {"uv.toml"},
	"pdm": {"pyproject.toml"}, "pipenv": {"pipfile"}, "pre-commit": {".pre-commit-config"}, "lefthook": {"lefthook", ".lefthook"},
	"docker-compose": {"docker-compose", "compose"}, "direnv": {".envrc"}, "mise": {"mise", ".mise", ".tool-versions"},
	"nix": {"flake"}, "nix-shell": {"shell.nix", "default.nix"}, "bazel": {"build", "workspace", "module"},
}

// syntax are words that name no file.
var syntax = strings.Fields("cd exec then fi do done if else elif for in while case esac set test eval source true false echo export unset " +
	"git rev-parse pwd home py js mjs cjs ts sh rb pl lua php run")

// doubt adds a command if its words do not show which files it executes.
func (p *Programs) doubt(key, line string) {
	c := hostenv.ReadCommand(line)
	if !c.Doubtful || p.top == "" {
		return
	}
	d := doubt{key: key}
	folder := "" // to which the shell has changed
	expands := strings.ContainsAny(line, "$`")
	interpreted, unknown := false, false
	for n, word := range c.Words {
		name := strings.TrimRight(path.Base(word), "0123456789.")
		unknown = unknown || strings.HasPrefix(word, "$") && !strings.Contains(word, "/") && word != "$" && word != "$1" && word != "$@"
		switch files, runs := runners[name]; {
		case runs:
			for _, f := range files {
				d.names = append(d.names, []string{f})
			}
			interpreted = false
		case hostenv.IsInterpreter(word):
			interpreted = true
			d.modules = d.modules || strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy")
		case filepath.IsAbs(hostenv.FromHome(word)) && !expands: // Programs.add finds the file itself
		case n > 0 && c.Words[n-1] == "cd":
			folder = path.Join(folder, word)
		case strings.Contains(word, "/"), interpreted, n > 0 && c.Words[n-1] == ".":
			d.name(folder + "/" + word)
		}
	}
	d.modules = d.modules && (strings.Contains(line, " -m") || strings.Contains(line, " -c"))
	d.blind = unknown && len(d.names) == 0 && landingRuns(key)
	if len(d.names) > 0 || d.modules || d.blind {
		p.doubts = append(p.doubts, d)
	}
}

// landingRuns reports whether a landing runs the command of a setting.
func landingRuns(key string) bool {
	return strings.HasPrefix(key, "filter.") && (strings.HasSuffix(key, ".smudge") || strings.HasSuffix(key, ".process"))
}

// name adds the path or module that a word can name. Python also runs files in the folders of a package.
func (d *doubt) name(word string) {
	var parts []string
	for _, part := range strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune("/.:,@%$", r) }) {
		if part = pathname.Same(part); len(part) > 0 && !slices.Contains(syntax, part) {
			parts = append(parts, part)
			d.names = append(d.names, append(slices.Clone(parts), "__init__"), append(slices.Clone(parts), "__main__"))
		}
	}
	if len(parts) > 0 {
		d.names = append(d.names, parts)
	}
}

// concerns reports whether a change may affect the files that the command runs.
func (d doubt) concerns(c gitops.Change) bool {
	if d.blind {
		return true
	}
	changed := pathname.Same(c.Path)
	parts := strings.Split(changed, "/")
	if d.modules && c.Old.Mode == 0 {
		ext := path.Ext(changed)
		if len(parts) == 1 && (ext == ".py" || ext == ".pyc" || ext == ".so" || ext == ".pyd") ||
			len(parts) == 2 && strings.HasPrefix(parts[1], "__init__.") || c.New.Mode == gitops.ModeLink && len(parts) == 1 {
			return true
		}
	}
	return slices.ContainsFunc(d.names, func(name []string) bool { return holds(parts, name) })
}

// holds reports whether a path contains the components of a name, or replaces a folder in it.
func holds(parts, name []string) bool {
	if len(parts) < len(name) && slices.Equal(parts, name[:len(parts)]) {
		return true
	}
	for at := range max(0, len(parts)-len(name)+1) {
		last := parts[at+len(name)-1]
		stem, _, _ := strings.Cut(strings.TrimPrefix(last, "."), ".")
		if slices.Equal(parts[at:at+len(name)-1], name[:len(name)-1]) && slices.Contains([]string{last, stem, strings.TrimSuffix(last, path.Ext(last))}, name[len(name)-1]) {
			return true
		}
	}
	return false
}
