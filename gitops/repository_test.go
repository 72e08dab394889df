package gitops

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit(files{"sub/deep/a": "1"})
	linked := filepath.Join(t.TempDir(), "linked")
	w.git("worktree", "add", "-q", linked)
	odd := filepath.Join(t.TempDir(), "new\nline")
	command(t, "", nil, "init", "-q", odd)
	bare := filepath.Join(t.TempDir(), "bare.git")
	command(t, "", nil, "init", "-q", "--bare", bare)
	link := filepath.Join(t.TempDir(), "link")
	check(t, os.Symlink(w.Top, link))
	separate := filepath.Join(t.TempDir(), "separate")
	command(t, "", nil, "init", "-q", "--separate-git-dir="+filepath.Join(t.TempDir(), "elsewhere"), separate)
	for name, c := range map[string]struct {
		dir, top string
		err      error
	}{
		"top":             {w.Top, w.Top, nil},
		"subfolder":       {filepath.Join(w.Top, "sub/deep"), w.Top, nil},
		"linked worktree": {linked, linked, nil},
		"through a link":  {link, w.Top, nil},
		"separate":        {separate, separate, nil},
		"outside":         {t.TempDir(), "", ErrNoRepository},
		"in .git":         {w.GitDir, "", ErrNoRepository},
		"in .git/refs":    {filepath.Join(w.GitDir, "refs"), "", ErrNoRepository},
		"bare":            {bare, "", ErrBare},
		"line break":      {odd, odd, nil},
	} {
		r, err := Open(t.Context(), c.dir)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
		if c.err != nil {
			continue
		}
		if r.Top != c.top || r.Format != "sha1" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	r, err := Open(t.Context(), linked)
	check(t, err)
	if r.CommonDir != w.GitDir || r.WorktreeID() != "linked" || w.WorktreeID() != "" {
		t.Errorf("linked worktree: common %q, ids %q and %q", r.CommonDir, r.WorktreeID(), w.WorktreeID())
	}
	if _, err := Open(t.Context(), filepath.Join(w.Top, "not there")); err == nil {
		t.Error("a folder that is not there: no error")
	}
}

// Hooks, aliases and "git rebase --exec" run us with git's variables set for somebody else.
func TestOpenScrubsTheCallersVariables(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t)
	old := w.commit(files{"a": "1"})
	other.commit(files{"b": "1"})
	before := other.picture()
	new := w.built(old, files{"a": "2"})
	landing := w.landing(old, new)
	for name, value := range map[string]string{
		"GIT_DIR": other.GitDir, "GIT_WORK_TREE": other.Top, "GIT_INDEX_FILE": filepath.Join(other.GitDir, "index"),
		"GIT_OBJECT_DIRECTORY": filepath.Join(other.GitDir, "objects"), "GIT_COMMON_DIR": other.GitDir, "GIT_NAMESPACE": "x", "GIT_PREFIX": "x/",
		"GIT_TRACE": filepath.Join(other.dir, "trace"), "GIT_EXTERNAL_DIFF": "false", "GIT_GLOB_PATHSPECS": "1", "GIT_DEFAULT_HASH": "sha256",
		"GIT_REFLOG_ACTION": "x", "GIT_ALTERNATE_OBJECT_DIRECTORIES": "/x", "GIT_REPLACE_REF_BASE": "refs/x/", "LC_ALL": "C.UTF-8",
	} {
		t.Setenv(name, value)
	}
	r, err := Open(t.Context(), w.Top)
	check(t, err)
	if r.Top != w.Top || r.GitDir != w.GitDir {
		t.Fatalf("opened %+v", r)
	}
	if head, err := r.Head(t.Context()); err != nil || head.Commit != old {
		t.Errorf("Head: %+v, %v", head, err)
	}
	check(t, r.Land(t.Context(), landing))
	for name := range map[string]bool{"GIT_DIR": true, "GIT_WORK_TREE": true, "GIT_INDEX_FILE": true, "GIT_OBJECT_DIRECTORY": true, "GIT_COMMON_DIR": true,
		"GIT_NAMESPACE": true, "GIT_TRACE": true, "GIT_GLOB_PATHSPECS": true, "GIT_ALTERNATE_OBJECT_DIRECTORIES": true, "GIT_REPLACE_REF_BASE": true, "GIT_DEFAULT_HASH": true} {
		check(t, os.Unsetenv(name))
	}
	if _, err := os.Stat(filepath.Join(other.dir, "trace")); err == nil {
		t.Error("git traced")
	}
	w.landed(new)
	other.picture().equals(t, before)
}

func TestHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	is := func(name, branch string, commit OID) {
		t.Helper()
		h, err := w.Head(t.Context())
		if err != nil || h.Branch != branch || h.Commit != commit {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
		if commit != "" && h.Tree != OID(w.git("rev-parse", "HEAD^{tree}")) {
			t.Errorf("%s: tree %s", name, h.Tree)
		}
	}
	is("unborn", "refs/heads/main", "")
	a := w.commit(files{"a": "1"})
	is("branch", "refs/heads/main", a)
	w.git("checkout", "-q", "--detach")
	is("detached", "", a)
	w.git("checkout", "-q", "--orphan", "feat/x")
	is("orphan", "refs/heads/feat/x", "")
	w.git("checkout", "-q", "-f", "main")
	check(t, os.WriteFile(filepath.Join(w.GitDir, "refs/heads/main"), []byte(strings.Repeat("ab", 20)+"\n"), 0o644))
	if h, err := w.Head(t.Context()); err == nil {
		t.Errorf("a branch that names no commit: %+v", h)
	}
}

func TestOperation(t *testing.T) {
	t.Parallel()
	for want, do := range map[string]func(w *world){
		"":       func(*world) {},
		"merge":  func(w *world) { _, _ = tryCommand(w.Top, nil, "merge", "-q", "side") },
		"rebase": func(w *world) { _, _ = tryCommand(w.Top, nil, "rebase", "-q", "side") },
		"rebase apply": func(w *world) {
			_, _ = tryCommand(w.Top, nil, "rebase", "-q", "--apply", "side")
		},
		"cherry-pick": func(w *world) { _, _ = tryCommand(w.Top, nil, "cherry-pick", "side") },
		"revert":      func(w *world) { _, _ = tryCommand(w.Top, nil, "revert", "--no-edit", "HEAD~1") },
		"bisect":      func(w *world) { w.git("bisect", "start") },
		"am": func(w *world) {
			mail := filepath.Join(w.GitDir, "mail")
			check(w.t, os.WriteFile(mail, []byte(w.git("format-patch", "-1", "--stdout", "side")), 0o600))
			_, _ = tryCommand(w.Top, nil, "am", "-q", mail)
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.commit(files{"a": "1"})
			w.git("branch", "side")
			w.commit(files{"a": "2"})
			w.commit(files{"a": "3"})
			w.git("checkout", "-q", "side")
			w.commit(files{"a": "4"})
			w.git("checkout", "-q", "main")
			do(w)
			word, _, _ := strings.Cut(want, " ")
			if got := w.Operation(); got != word {
				t.Errorf("%q, want %q; git status says\n%s", got, word, w.git("status"))
			}
		})
	}
}

func TestOperationOfALinkedWorktree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit(files{"a": "1"})
	linked := filepath.Join(t.TempDir(), "linked")
	w.git("worktree", "add", "-q", linked)
	w.git("bisect", "start")
	l := openWorld(t, linked)
	if got := l.Operation(); got != "" {
		t.Errorf("the main worktree's bisect counts here: %q", got)
	}
	if got := w.Operation(); got != "bisect" {
		t.Errorf("%q, want bisect", got)
	}
}

func TestConfig(t *testing.T) {
	w := newWorld(t)
	w.git("config", "airlock.memory", "first")
	w.git("config", "--add", "airlock.memory", "last\nline")
	w.git("config", "core.hooksPath", ".husky")
	w.git("config", "filter.LFS.smudge", "x")
	w.git("config", "airlock.backend", "native")
	check(t, os.WriteFile(filepath.Join(w.GitDir, "more"), []byte("[airlock]\n\tincluded\n\tempty =\n\tn = 0\n\todd = maybe\n\tbackend = docker\n"), 0o600))
	w.git("config", "include.path", "more")
	// This is how git gives -c to the commands that it runs.
	t.Setenv("GIT_CONFIG_PARAMETERS", `'airlock.cpus'='2' 'airlock.autoland'='false'`)
	r, err := Open(t.Context(), w.Top)
	check(t, err)
	c, err := r.Config(t.Context())
	check(t, err)
	for key, want := range map[string]string{"airlock.memory": "last\nline", "airlock.cpus": "2", "Airlock.CPUs": "2", "airlock.backend": "docker",
		"core.hooksPath": ".husky", "filter.LFS.smudge": "x", "filter.lfs.smudge": "none", "airlock.none": "none", "airlock.empty": "", "core.fsmonitor": "none"} {
		if got := c.String(key, "none"); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string]bool{"airlock.autoLand": false, "airlock.included": true, "airlock.empty": false, "airlock.n": false, "airlock.cpus": true, "airlock.none": true} {
		if got, err := c.Bool(key, true); err != nil || got != want {
			t.Errorf("%s is %v, %v, want %v", key, got, err, want)
		}
	}
	if _, err := c.Bool("airlock.odd", true); err == nil {
		t.Error("maybe is no boolean")
	}
	all := map[string]bool{}
	for key, value := range c.All() {
		all[key+"="+value] = true
	}
	for _, want := range []string{"airlock.memory=first", "airlock.memory=last\nline", "airlock.backend=native", "airlock.backend=docker", "airlock.cpus=2"} {
		if !all[want] {
			t.Errorf("%q is not among all values", want)
		}
	}
}

func TestChangesAndVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit(files{"a": "1", "b": "1"})
	w.write(files{"a": "2", "new\nline": "x", "c": "y"})
	w.git("add", "c")
	if n, err := w.Changes(t.Context()); err != nil || n != 3 {
		t.Errorf("Changes: %d, %v, want 3", n, err)
	}
	check(t, CheckVersion(t.Context()))
}

// What .gitmodules says of hiding a submodule hides it from no check of ours.
func TestDiffShowsSubmodules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.commit(files{"a": "1", ".gitmodules": "[submodule \"s\"]\n\tpath = s\n\turl = ./s\n\tignore = all\n"})
	w.git("config", "diff.ignoreSubmodules", "all")
	w.git("config", "diff.renames", "copies")
	w.git("config", "diff.noprefix", "true")
	index := filepath.Join(t.TempDir(), "i")
	env := []string{"GIT_INDEX_FILE=" + index}
	command(t, w.Top, env, "read-tree", string(old))
	input(t, w.Top, env, "160000 "+string(old)+"\ts\n100644 "+string(w.blob("1"))+"\tb\n0 "+string(old.zero())+"\ta\n", "update-index", "--index-info")
	new := OID(w.git("commit-tree", command(t, w.Top, env, "write-tree"), "-p", string(old), "-m", "m"))
	changes, err := w.Diff(t.Context(), old, new)
	check(t, err)
	one := Entry{ModeFile, w.blob("1")}
	want := []Change{{"a", one, Entry{}}, {"b", Entry{}, one}, {"s", Entry{}, Entry{ModeGitlink, old}}}
	if len(changes) != 3 || changes[0] != want[0] || changes[1] != want[1] || changes[2] != want[2] {
		t.Errorf("Diff: %v, want %v", changes, want)
	}
	// A landing makes the submodule's folder and leaves what is in it alone.
	w.git("config", "--unset", "diff.ignoreSubmodules")
	check(t, w.Land(t.Context(), w.landing(old, new)))
	if info, err := os.Stat(filepath.Join(w.Top, "s")); err != nil || !info.IsDir() {
		t.Errorf("s: %v, %v", info, err)
	}
	w.landed(new)
}
