package hostenv

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// world is a folder with a repository in it, and what leads there from outside.
func world(t *testing.T) (dir, tree string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree = filepath.Join(dir, "r")
	for _, d := range []string{"r/.git/worktrees/w", "r/bin", "w", "out/bin"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(tree, ".git/worktrees/w/gitdir"), filepath.Join(dir, "w/.git")+"\n")
	write(t, filepath.Join(tree, ".git/worktrees/w/commondir"), "../..\n")
	write(t, filepath.Join(dir, "w/.git"), "gitdir: "+filepath.Join(tree, ".git/worktrees/w")+"\n")
	return dir, tree
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) string {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestPathEntries(t *testing.T) {
	dir, tree := world(t)
	out := filepath.Join(dir, "out")
	link(t, "../../r/bin/sh", filepath.Join(out, "bin/sh"))
	inside := []string{"", ".", "bin", "../r/bin", tree, tree + "/bin", tree + "/.venv/bin", tree + "//bin/", dir + "/w/bin", dir + "/out/../r/bin",
		link(t, "../r/bin", out+"/a"), link(t, "a", out+"/b"), link(t, "../r", out+"/c") + "/bin", out + "/bin", out + "/c/../out/none"}
	outside := []string{out, out + "/none", dir + "/r2/bin", "/usr/bin", link(t, "../out", out+"/d")}
	for _, where := range []string{tree, tree + "/bin", dir + "/w"} {
		trees := findTrees(where, nil)
		kept, gone := cleanPath(new(Walk), strings.Join(slices.Concat(inside, outside), ":"), trees)
		if kept != strings.Join(outside, ":") || len(gone) != len(inside) {
			t.Errorf("from %s: kept %q\ngone %q", where, kept, gone)
		}
	}
}

// TestRandomLinks compares with what the kernel says: a path that leads to or over the tree is found out, through any
// links.
func TestRandomLinks(t *testing.T) {
	dir, tree := world(t)
	random := rand.New(rand.NewPCG(1, 2))
	places := []string{"out", "out/bin", "r", "r/bin", "w", "out/none", "r/.git"}
	trees := findTrees(tree, nil)
	inside := 0
	for n := range 3000 {
		target := places[random.IntN(len(places))]
		if random.IntN(2) == 0 {
			target = filepath.Join(dir, target)
		} else {
			target = strings.Repeat("../", 1+random.IntN(2)) + target
		}
		name := fmt.Sprintf("%s/l%d", []string{"out", "out/bin"}[random.IntN(2)], n)
		link(t, target, filepath.Join(dir, name))
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			places = append(places, name, name+"/..", name+"/bin")
		}
		tried := filepath.Join(dir, places[random.IntN(len(places))])
		real, err := filepath.EvalSymlinks(tried)
		if err != nil {
			continue
		}
		rel, below := relative(tree, real)
		_, linked := relative(filepath.Join(dir, "w"), real)
		if below || linked {
			inside++
			if !touches(new(Walk), tried, trees) {
				t.Fatalf("%s leads to %s (%s), which was not seen", tried, real, rel)
			}
		}
	}
	if inside < 100 {
		t.Errorf("only %d paths led into the tree", inside)
	}
}

func TestVariables(t *testing.T) {
	dir, tree := world(t)
	outside := link(t, "../r/x.so", filepath.Join(dir, "out/x.so"))
	for variable, want := range map[string]bool{
		"LD_PRELOAD=" + tree + "/x.so": false, "LD_LIBRARY_PATH=/usr/lib": false, "NODE_OPTIONS=--require ./x": false,
		"PYTHONPATH=lib": false, "PERL5OPT=-Mx": false, "RUBYOPT=-rx": false, "BASH_ENV=x": false, "ENV=x": false, "GCONV_PATH=/opt": false,
		"OPENSSL_CONF=x": false, "TERMINFO=" + tree: false, "JAVA_TOOL_OPTIONS=-javaagent:x.jar": false, "UNHEARD_OF=1": false,
		"GIT_EXEC_PATH=" + tree + "/bin": false, "GIT_EXEC_PATH=bin": false, "GIT_EXEC_PATH=/usr/lib/git-core": true,
		"GNUPGHOME=" + tree + "/g": false, "GNUPGHOME=g": false, "GNUPGHOME=/home/u/.gnupg": true, "GNUPGHOME=" + outside: false,
		"SSH_AUTH_SOCK=/run/ssh": true, "TMPDIR=tmp": false, "DOCKER_HOST=unix://" + tree + "/s": false, "DOCKER_HOST=unix:///run/docker.sock": true,
		"PAGER=less -R": true, "PAGER=bin/less": false, "PAGER=$PWD/less": false, "PAGER=python3 -m pager": false, "LESSOPEN=|/usr/bin/lesspipe %s": true,
		"LESSOPEN=|tools/x %s": false, "TZ=Europe/Berlin": true, "https_proxy=http://proxy.example:3128/": true, "LC_ALL=de_DE.UTF-8": true,
		"HOME=" + tree: true, "GIT_CONFIG_GLOBAL=" + tree + "/c": true, "XDG_DATA_DIRS=/usr/share:" + tree: false, "EDITOR=code --wait": true,
		"EDITOR=vim -f": true, "VISUAL=/usr/bin/emacs -nw": true, "EDITOR=vim -Svimrc": false, "EDITOR=vim -f x": false, "EDITOR=emacs --eval x": false,
		"GIT_SSH_COMMAND=ssh -o BatchMode=yes": true, "GIT_SSH_COMMAND=./ssh": false, "KEPT=1": true, "KEPT=" + tree: false,
	} {
		name, value, _ := strings.Cut(variable, "=")
		k, wanted := kindOf(name, []string{"KEPT"})
		if got := wanted && (isGuarded(name) || leads(new(Walk), k, value, findTrees(tree, nil)) == ""); got != want {
			t.Errorf("%s: kept %v, want %v", variable, got, want)
		}
	}
}

func TestFindTrees(t *testing.T) {
	dir, tree := world(t)
	write(t, filepath.Join(tree, ".git/config"), "[core]\n\tworktree = \""+dir+"/elsewhere\"\n")
	has := func(trees []Tree, top string) bool {
		return slices.ContainsFunc(trees, func(x Tree) bool { return x.Top == top })
	}
	for _, found := range [][]Tree{findTrees(tree, nil), findTrees(tree+"/bin", nil), findTrees(dir+"/w", nil), findTrees(dir, map[string]string{"GIT_DIR": "r/.git"})} {
		for _, top := range []string{tree, dir + "/w", dir + "/elsewhere"} {
			if !has(found, top) {
				t.Errorf("%s is not among %v", top, found)
			}
		}
	}
	if found := findTrees(dir, map[string]string{"GIT_WORK_TREE": "out"}); !has(found, dir+"/out") {
		t.Errorf("GIT_WORK_TREE is not among %v", found)
	}
}
