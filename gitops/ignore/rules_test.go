package ignore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestIgnoredAgainstGit compares random rules and paths with what "git check-ignore" says in the user's own work tree, and
// asks for paths over which git in the work tree would end.
func TestIgnoredAgainstGit(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	words := []string{"a", "b", ".venv", "build", "node_modules", "*", "a*", "**", "x.o"}
	pick := func() string { return words[random.IntN(len(words))] }
	some := func() string {
		parts := make([]string, 1+random.IntN(3))
		for n := range parts {
			parts[n] = pick()
		}
		return strings.Join(parts, "/")
	}
	asked, covered := 0, 0
	for range 12 {
		top := t.TempDir()
		gitIn := func(stdin string, args ...string) string {
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Stdin = top, strings.NewReader(stdin)
			out, err := cmd.Output()
			if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
				t.Fatalf("git %q: %v", args, err)
			}
			return string(out)
		}
		gitIn("", "init", "-q")
		rules := func(n int) string {
			var b strings.Builder
			for range n {
				b.WriteString([]string{"", "", "", "!"}[random.IntN(4)] + []string{"", "/"}[random.IntN(2)] + some() + []string{"", "/"}[random.IntN(2)] + "\n")
			}
			return b.String()
		}
		for _, d := range []string{"", "a", "a/b", "build"} {
			if err := os.MkdirAll(filepath.Join(top, d), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(top, d, ".gitignore"), []byte(rules(random.IntN(4))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(top, ".git/info/exclude"), []byte(rules(2)), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := gitops.Open(t.Context(), top)
		if err != nil {
			t.Fatal(err)
		}
		i := RulesOf(r, t.TempDir())
		for range 4 {
			var paths []string
			for range 200 {
				paths = append(paths, some())
			}
			want := gitIn(strings.Join(paths, "\x00")+"\x00", "check-ignore", "--no-index", "-z", "--stdin")
			got, err := i.Ignored(t.Context(), paths)
			if err != nil {
				t.Fatal(err)
			}
			wanted := map[string]bool{}
			for p := range strings.SplitSeq(strings.TrimSuffix(want, "\x00"), "\x00") {
				wanted[p] = p != ""
			}
			for _, p := range paths {
				asked++
				if wanted[p] {
					covered++
				}
				if _, has := got[p]; has != wanted[p] {
					t.Errorf("%q: git says %v, we say %q", p, wanted[p], got[p])
				}
			}
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d paths, %d of them ignored", asked, covered)
	if covered < asked/20 {
		t.Errorf("only %d of %d paths are ignored", covered, asked)
	}
}

func TestIgnoredHostilePaths(t *testing.T) {
	top, state := t.TempDir(), t.TempDir()
	if out, err := exec.Command("git", "init", "-q", top).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	if err := os.Symlink("/etc", filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, ".gitignore"), []byte("*.o\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := gitops.Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	i := RulesOf(r, state)
	paths := []string{"link/x.o", "link/hosts", ":(top)x.o", "a\nb.o", "*", "-z", "\xff.o", "\"q\".o", "a//b", strings.Repeat("d/", 127) + "x.o", strings.Repeat("d/", 24) + "x", strings.Repeat(strings.Repeat("e", 250)+"/", 15) + "x.o"}
	for n := range 20000 {
		paths = append(paths, fmt.Sprintf("deep%d/%d.o", n%500, n))
	}
	got, err := i.Ignored(t.Context(), paths)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		if _, has := got[p]; has != strings.HasSuffix(p, ".o") {
			t.Errorf("%.40q: %v", p, has)
		}
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(state); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if out, _ := exec.Command("git", "-C", top, "status", "--porcelain").Output(); bytes.Contains(out, []byte("deep")) {
		t.Errorf("the work tree changed: %s", out)
	}
}

// TestFiles checks which ignore files below the top are found.
func TestFiles(t *testing.T) {
	w := gitopstest.New(t)
	w.Write(gitopstest.Files{"a": "1", "b/x": "2", "c/.gitignore": "x", ".d/.gitignore": "y", "c/e/.gitignore": "z", "[f]/.gitignore": ""})
	gitopstest.Check(t, os.Symlink("c", filepath.Join(w.Top, "link")))
	files := RulesOf(w.Repository, t.TempDir()).Files(gitops.Config{"core.excludesfile": "/own"})
	var found []string
	for _, name := range files {
		if rel, ok := strings.CutPrefix(name, w.Top+"/"); ok {
			found = append(found, rel)
		}
	}
	slices.Sort(found)
	want := []string{".d/.gitignore", ".git/info/exclude", ".gitignore", "[f]/.gitignore", "c/.gitignore", "link/.gitignore"}
	if !slices.Equal(found, want) || !slices.Contains(files, "/own") {
		t.Errorf("%q, want %q and /own", files, want)
	}
}

// TestStateAbove checks that the state covers the ignore files above a path at any depth, and no others.
func TestStateAbove(t *testing.T) {
	top := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", top).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	r, err := gitops.Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat("d/", 40)
	if err := os.MkdirAll(filepath.Join(top, deep+"e"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("d", filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	state := func(p string) string { return RulesOf(r, t.TempDir()).StateAbove([]string{p}) }
	for _, c := range []struct {
		path, file string
		covered    bool
	}{
		{deep + "x", ".gitignore", true},
		{deep + "x", "d/d/d/.gitignore", true},
		{deep + "x", deep + ".gitignore", true},
		{deep + "new/x", deep + ".gitignore", true},
		{deep + "e", deep + "e/.gitignore", true},
		{deep + "x", deep + "e/.gitignore", false},
		{"link/x", "d/.gitignore", false},
	} {
		before := state(c.path)
		if err := os.WriteFile(filepath.Join(top, c.file), []byte("/"+c.path+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if changed := state(c.path) != before; changed != c.covered {
			t.Errorf("%.20s with %.20s: changed %v", c.path, c.file, changed)
		}
		if err := os.Remove(filepath.Join(top, c.file)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNamedBesideLink checks ordinary paths together with one below a symbolic link. Git exits with an error when it reads the path below the link.
func TestNamedBesideLink(t *testing.T) {
	top := t.TempDir()
	git := exec.Command("git", "init", "-q")
	git.Dir = top
	if err := errors.Join(git.Run(), os.WriteFile(filepath.Join(top, ".gitignore"), []byte(".env\n"), 0o600), os.Symlink("/etc", filepath.Join(top, "link"))); err != nil {
		t.Fatal(err)
	}
	r, err := gitops.Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	named, err := Named(t.Context(), r, []string{"link/.env", "link/deep/file", ".env", "sub/.env", "README"})
	if err != nil || len(named) != 2 || !named[".env"] || !named["sub/.env"] {
		t.Errorf("%v, %v", named, err)
	}
}
