package policy

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/prisontest"
	"github.com/git-airlock/git-airlock/promote/policy/hostgit"
)

var opened = regexp.MustCompile(`(?:openat\(AT_FDCWD<([^>]*)>, |execve\()"([^"]*)".* = (?:\d+|-1 ENOENT)`)

// TestHostFilesAgainstGit makes random set-ups of a user, has git do what reads settings, runs hooks and filters in them, and
// watches by strace(1) which files git and its children open: a change of each of those in the work tree has to be held.
func TestHostFilesAgainstGit(t *testing.T) {
	_, err := exec.LookPath("strace")
	prisontest.Need(t, "strace", err)
	random := rand.New(rand.NewPCG(5, 6))
	rounds, seen := 60, 0
	if testing.Short() {
		rounds = 20 // strace makes everything slow
	}
	for n := range rounds {
		s := &setup{T: t, dir: t.TempDir(), random: random}
		s.make()
		held := s.facts().programs()
		for path := range s.opened() {
			seen++
			c := gitops.Change{Path: path, Old: gitops.Entry{Mode: gitops.ModeFile}, New: gitops.Entry{Mode: gitops.ModeFile}}
			if len(held.Reasons(c)) == 0 {
				t.Errorf("set-up %d (%s): git opened or executed %s, a change of which would land", n, strings.Join(s.traits, ", "), path)
			}
		}
	}
	t.Logf("%d set-ups, %d files of the tree opened", rounds, seen)
	if seen < rounds {
		t.Errorf("only %d files of the tree were opened in %d set-ups", seen, rounds)
	}
}

// setup is a user's home, and a repository.
type setup struct {
	*testing.T
	dir, home, top string
	random         *rand.Rand
	traits         []string
}

func (s *setup) file(name, content string) string {
	s.Helper()
	check(s.T, os.MkdirAll(filepath.Dir(name), 0o755))
	check(s.T, os.WriteFile(name, []byte(content), 0o755))
	return name
}

// linked makes a file in the tree and a way to it from outside over links.
func (s *setup) linked(name, at, content string) {
	s.Helper()
	target := s.file(filepath.Join(s.top, name), content)
	for range s.random.IntN(3) {
		way := fmt.Sprintf("%s/way%d", []string{s.dir, s.top}[s.random.IntN(2)], s.random.Uint32())
		check(s.T, os.Symlink(target, way))
		target = way
	}
	check(s.T, os.MkdirAll(filepath.Dir(at), 0o755))
	_ = os.Remove(at)
	check(s.T, os.Symlink(target, at))
}

func (s *setup) trait(name string, one int, do func()) {
	if s.random.IntN(one) == 0 {
		s.traits = append(s.traits, name)
		do()
	}
}

func (s *setup) make() {
	dir, err := filepath.EvalSymlinks(s.dir)
	check(s.T, err)
	s.dir, s.top, s.home = dir, filepath.Join(dir, "r"), filepath.Join(dir, "home")
	s.trait("home is the tree", 5, func() { s.home = s.top })
	s.trait("home in the tree", 6, func() { s.home = filepath.Join(s.top, "h") })
	check(s.T, os.MkdirAll(s.home, 0o755))
	s.git("init", "-q", s.top)
	config := "[user]\n\tname = U\n\temail = u@host.example\n"
	if s.random.IntN(3) == 0 {
		s.traits = append(s.traits, "dotfiles")
		s.linked("dot/gitconfig", filepath.Join(s.home, ".gitconfig"), config)
	} else {
		s.file(filepath.Join(s.home, ".gitconfig"), config)
	}
	s.trait("a linked folder of settings", 4, func() {
		check(s.T, os.MkdirAll(filepath.Join(s.home, ".config"), 0o755))
		check(s.T, os.MkdirAll(filepath.Join(s.top, "dot/git"), 0o755))
		s.file(filepath.Join(s.top, "dot/git/config"), "[a]\n\tb = 1\n")
		check(s.T, os.Symlink(filepath.Join(s.top, "dot/git"), filepath.Join(s.home, ".config/git")))
	})
	s.trait("a relative include", 3, func() {
		s.file(filepath.Join(s.top, "inc/one"), "[include]\n\tpath = two\n")
		s.file(filepath.Join(s.top, "inc/two"), "[a]\n\tc = 1\n")
		s.git("config", "include.path", "../inc/one")
	})
	s.trait("a hook that is a link", 3, func() { s.linked("dot/hook", filepath.Join(s.top, ".git/hooks/post-commit"), "#!/bin/sh\nexit 0\n") })
	s.trait("a folder of hooks", 4, func() {
		s.file(filepath.Join(s.top, ".husky/pre-commit"), "#!/bin/sh\nexit 0\n")
		s.git("config", "core.hooksPath", s.optional(".husky"))
	})
	s.trait("linked attributes", 4, func() { s.linked("dot/attributes", filepath.Join(s.top, ".git/info/attributes"), "*.q text\n") })
	s.trait("attributes file", 4, func() {
		s.linked("dot/more", filepath.Join(s.dir, "attributes"), "*.z text\n")
		s.git("config", "core.attributesFile", s.optional(filepath.Join(s.dir, "attributes")))
	})
	s.trait("excludes file", 4, func() {
		s.linked("dot/ignore", filepath.Join(s.dir, "ignore"), "*.o\n")
		s.git("config", "core.excludesFile", s.optional(filepath.Join(s.dir, "ignore")))
	})
	s.filter()
}

// optional marks every second path as one that may be missing, if git knows such paths.
func (s *setup) optional(path string) string {
	if s.random.IntN(2) == 0 && gitops.Since(s.Context(), 52) {
		return ":(optional)" + path
	}
	return path
}

// filter gives the user a filter, in one of many ways to call it.
func (s *setup) filter() {
	s.file(filepath.Join(s.top, "tools/fmt"), "#!/bin/sh\ncat\n")
	s.file(filepath.Join(s.top, "tools/nb.py"), "import sys\nsys.stdout.write(sys.stdin.read())\n")
	s.file(filepath.Join(s.top, "tools/__init__.py"), "")
	s.file(filepath.Join(s.top, "tools/fmt.pl"), "print <STDIN>;\n")
	s.file(filepath.Join(s.top, "Makefile"), "fmt:\n\t@cat\n")
	check(s.T, os.Symlink(filepath.Join(s.top, "tools"), filepath.Join(s.dir, "tools")))
	s.file(filepath.Join(s.home, "bin/own"), "#!/bin/sh\ncat\n")
	ways := []string{
		"tools/fmt", "./tools/fmt", "$PWD/tools/fmt", `"$PWD"/tools/fmt`, "cd tools && ./fmt", "sh tools/fmt", "sh -c './tools/fmt'", ". tools/fmt",
		"python3 -m tools.nb", "perl tools/fmt.pl", "make -s fmt", s.dir + "/tools/fmt", "~/bin/own", "cat | sh tools/fmt", "X=1 tools/fmt",
		"$(git rev-parse --show-toplevel)/tools/fmt", "exec tools/fmt", "env tools/fmt", "sh -c 'cd ./tools; . ./fmt'", "xargs -0 sh tools/fmt",
	}
	way := ways[s.random.IntN(len(ways))]
	s.traits = append(s.traits, "filter "+way)
	s.git("config", "filter.x.smudge", way)
	s.git("config", "filter.x.clean", way)
	s.file(filepath.Join(s.top, ".git/info/sparse"), "")
	s.file(filepath.Join(s.top, ".gitattributes"), "*.f filter=x\n")
}

func (s *setup) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.top
	if _, err := os.Stat(s.top); err != nil {
		cmd.Dir = s.dir
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "GIT_CONFIG_NOSYSTEM=1", "PYTHONDONTWRITEBYTECODE=1"}
	return cmd
}

func (s *setup) git(args ...string) {
	s.Helper()
	if out, err := s.command("git", args...).CombinedOutput(); err != nil {
		s.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func (s *setup) facts() Facts {
	s.Setenv("HOME", s.home)
	s.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	s.Setenv("GIT_CONFIG_GLOBAL", "")
	check(s.T, os.Unsetenv("GIT_CONFIG_GLOBAL"))
	r, err := gitops.Open(s.Context(), s.top)
	check(s.T, err)
	settings, err := r.Settings(s.Context())
	check(s.T, err)
	return Facts{Top: r.Top, Config: gitops.ConfigOf(settings), Host: hostgit.Files{Settings: settings, GitDir: r.GitDir, CommonDir: r.CommonDir}}
}

// opened lists the files of the tree that git and its children opened or executed, beside those that every repository has.
func (s *setup) opened() map[string]bool {
	found := map[string]bool{}
	for _, script := range []string{
		"git config --list >/dev/null", "git commit -q --allow-empty -m x", "echo x | git hash-object -w --path a.f --stdin >/dev/null",
		"b=$(echo x | git hash-object -w --stdin); git cat-file --filters --path=a.f $b >/dev/null", "git check-ignore q; git check-attr -a q >/dev/null",
	} {
		trace := filepath.Join(s.dir, "trace")
		cmd := s.command("strace", "-f", "-y", "-qq", "-s", "4096", "-e", "trace=openat,execve", "-o", trace, "sh", "-c", script)
		if out, err := cmd.CombinedOutput(); err != nil && !strings.Contains(script, "check-ignore") {
			s.Fatalf("%s (%s): %v\n%s", script, strings.Join(s.traits, ", "), err, out)
		}
		text, err := os.ReadFile(trace)
		check(s.T, err)
		cwd := s.top
		for line := range strings.Lines(string(text)) {
			m := opened.FindStringSubmatch(line)
			if m == nil || strings.Contains(line, "O_DIRECTORY") || strings.Contains(line, "ENOENT") {
				continue
			}
			if m[1] != "" {
				cwd = m[1]
			}
			name := m[2]
			if !filepath.IsAbs(name) {
				name = filepath.Join(cwd, name)
			}
			for _, name := range []string{name, resolvedOr(name)} {
				rel, below := strings.CutPrefix(name, s.top+"/")
				if below && !strings.HasPrefix(rel, ".git/") && filepath.Base(rel) != ".gitattributes" && filepath.Base(rel) != ".gitignore" {
					found[rel] = true
				}
			}
		}
	}
	return found
}

func resolvedOr(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return name
}
