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
