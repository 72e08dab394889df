package hostgit

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// Files are the places on this machine from which git takes the user's settings and programs.
type Files struct {
	Settings  []gitops.Setting // with the files that they come from
	GitDir    string
	CommonDir string
}

// homeFiles are files and folders of a home from which git, or a program that git starts, takes settings. The home
// can be the work tree, be inside it, or contain links into it.
var homeFiles = []string{
	".gitconfig", ".config/git", ".git-credentials", ".gitignore", ".gitattributes", ".ssh", ".gnupg", ".netrc", ".docker", ".curlrc",
	".less", ".lesskey", ".lessfilter", ".config/lesskey", ".config/gh", ".config/glab-cli", ".config/delta", ".config/bat", ".vimrc", ".vim",
	".config/nvim", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".zprofile", ".config/fish", ".npmrc", ".config/pip", ".envrc",
}

// host adds the files from which git takes settings, including files that do not exist today.
func (p *Programs) host(h Files) {
	if p.top == "" {
		return
	}
	for _, file := range []string{"/etc/gitconfig", "/etc/gitattributes", os.Getenv("GIT_CONFIG_SYSTEM"), os.Getenv("GIT_CONFIG_GLOBAL")} {
		p.add("git's configuration", file, false)
	}
	for _, home := range hostenv.Homes() {
		for _, name := range homeFiles {
			p.add("~/"+name, filepath.Join(home, name), true)
		}
	}
	if xdg := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(xdg) {
		p.add("git's configuration", filepath.Join(xdg, "git"), true)
	}
	p.add("GNUPGHOME", os.Getenv("GNUPGHOME"), true)
	for _, dir := range slices.Compact([]string{h.CommonDir, h.GitDir}) {
		if dir == "" {
			continue
		}
		p.add("git's directory", dir, true)
		for _, name := range []string{"config", "config.worktree", "info/attributes", "info/exclude", "info/sparse-checkout", "commondir",
			"objects/info/alternates", "lfs"} {
			p.add(".git/"+name, filepath.Join(dir, name), true)
		}
		p.hooks(filepath.Join(dir, "hooks"))
	}
	seen := map[string]bool{}
	for _, s := range h.Settings {
		if s.File == "" {
			continue
		}
		file := p.absolute(s.File)
		if !seen[file] {
			seen[file] = true
			p.add("git's configuration", file, false)
		}
		switch {
		case s.Key == "core.hookspath" && s.Value != "":
			p.hooks(p.absolute(hostenv.Pathname(s.Value)))
		case s.Key == "include.path", strings.HasPrefix(s.Key, "includeif.") && strings.HasSuffix(s.Key, ".path"):
			p.include(s.Key, s.Value, file, seen)
		}
	}
}

// readAttributes reads the attribute files outside of the tree, gitattributes(5), in ascending precedence.
func (p *Programs) readAttributes(c gitops.Config, h Files) {
	if p.top == "" {
		return
	}
	users := hostenv.Pathname(c.String("core.attributesfile", "~/.config/git/attributes"))
	if xdg := os.Getenv("XDG_CONFIG_HOME"); xdg != "" && c.String("core.attributesfile", "") == "" {
		users = filepath.Join(xdg, "git/attributes")
	}
	p.below = contents("/etc/gitattributes", p.absolute(users))
	if h.CommonDir != "" {
		p.above = contents(filepath.Join(h.CommonDir, "info/attributes"))
	}
}

// contents reads the regular files among files.
func contents(files ...string) (all [][]byte) {
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > includeLimit {
			continue
		}
		if text, err := os.ReadFile(name); err == nil {
			all = append(all, text)
		}
	}
	return all
}

// hooks adds a folder of hooks and the hooks in it, because each can be a link. Git runs a hook only under its exact
// name, so none of the samples that git init writes.
func (p *Programs) hooks(dir string) {
	p.add("a hook", dir, true)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".sample") {
			continue
		}
		p.add("the hook "+gitops.Text(e.Name()).String(), filepath.Join(dir, e.Name()), true)
	}
}

// includeLimit bounds the bytes that are read of an included file whose condition does not hold today, and of an attribute file.
const includeLimit = 1 << 20

var includedPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?mi)^\s*path\s*=\s*"?([^"\n]+?)"?\s*$`) })

// include adds an included file, whether or not its condition holds today, and the files that it includes. A relative
// path starts at the folder of the including file.
func (p *Programs) include(key, value, from string, seen map[string]bool) {
	name := hostenv.FromHome(value)
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(from), name)
		if resolved, err := filepath.EvalSymlinks(from); err == nil { // git takes the name as written, but the user may mean the resolved one
			p.add(key, filepath.Join(filepath.Dir(resolved), value), false)
		}
	}
	if p.add(key, name, false); seen[name] {
		return
	}
	seen[name] = true
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > includeLimit {
		return
	}
	text, _ := os.ReadFile(name)
	for _, m := range includedPath().FindAllSubmatch(text, -1) {
		p.include(key, string(m[1]), name, seen)
	}
}
