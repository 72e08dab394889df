package gitops_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestTracksLikeGit compares with git in every form of an index. Without git, only a path that the index lacks has an answer.
func TestTracksLikeGit(t *testing.T) {
	t.Parallel()
	paths := []string{"d", "d/a", ".w-1f", ".w-1fa", ".w-1", "absent", "d/", "*", ":/", "?"}
	for name, c := range map[string]struct {
		commands [][]string
		inGit    bool // whether only git can read this index
	}{
		"plain":     {},
		"version 3": {commands: [][]string{{"add", "-N", "later"}}},
		"version 4": {commands: [][]string{{"update-index", "--index-version", "4"}}, inGit: true},
		"split":     {commands: [][]string{{"update-index", "--split-index"}, {"update-index", "--force-remove", "later"}}, inGit: true},
		"sparse":    {commands: [][]string{{"sparse-checkout", "set", "--cone", "--sparse-index", "d"}}},
		"tracked":   {commands: [][]string{{"add", "-f", ".w-1f"}}},
		"gitlink":   {commands: [][]string{{"init", "-q", ".w-1f"}, {"-C", ".w-1f", "commit", "-q", "--allow-empty", "-m", "x"}, {"add", "-f", ".w-1f"}}},
		"none":      {commands: [][]string{{"rm", "-r", "-q", "--cached", "."}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := gitopstest.New(t)
			w.CommitAll(gitopstest.Files{"d/a": "1", "e/b": "2", ".w-1fb": "3"})
			w.Write(gitopstest.Files{"later": "4"})
			if name == "tracked" {
				w.Write(gitopstest.Files{".w-1f/x": "5"})
			}
			for _, command := range c.commands {
				w.Run(command...)
			}
			none, cancel := context.WithCancel(t.Context())
			cancel()
			for _, path := range paths {
				want := w.Run("--literal-pathspecs", "ls-files", "--", path) != ""
				if got, err := w.Tracks(t.Context(), path); got != want || err != nil {
					t.Errorf("%s: %v, %v, want %v", path, got, err, want)
				}
				if got, err := w.Tracks(none, path); got {
					t.Errorf("%s: %v, %v without git", path, got, err)
				} else if path == "absent" && (err == nil) == c.inGit {
					t.Errorf("%s: %v without git", path, err)
				}
			}
		})
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	w.CommitAll(gitopstest.Files{"sub/deep/a": "1"})
	linked := filepath.Join(t.TempDir(), "linked")
	w.Run("worktree", "add", "-q", linked)
	odd := filepath.Join(t.TempDir(), "new\nline")
	gitopstest.Command(t, "", nil, "init", "-q", odd)
	bare := filepath.Join(t.TempDir(), "bare.git")
	gitopstest.Command(t, "", nil, "init", "-q", "--bare", bare)
	link := filepath.Join(t.TempDir(), "link")
	gitopstest.Check(t, os.Symlink(w.Top, link))
	separate := filepath.Join(t.TempDir(), "separate")
	gitopstest.Command(t, "", nil, "init", "-q", "--separate-git-dir="+filepath.Join(t.TempDir(), "elsewhere"), separate)
	for name, c := range map[string]struct {
		dir, top string
		err      error
	}{
		"top":             {w.Top, w.Top, nil},
		"subfolder":       {filepath.Join(w.Top, "sub/deep"), w.Top, nil},
		"linked worktree": {linked, linked, nil},
		"through a link":  {link, w.Top, nil},
		"separate":        {separate, separate, nil},
		"outside":         {t.TempDir(), "", gitops.ErrNoRepository},
		"in .git":         {w.GitDir, "", gitops.ErrNoRepository},
		"in .git/refs":    {filepath.Join(w.GitDir, "refs"), "", gitops.ErrNoRepository},
		"bare":            {bare, "", gitops.ErrBare},
		"line break":      {odd, odd, nil},
	} {
		r, err := gitops.Open(t.Context(), c.dir)
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
	for _, dir := range []string{bare, filepath.Join(bare, "refs")} {
		r, err := gitops.OpenBare(t.Context(), dir)
		if err != nil || r.Top != bare || r.GitDir != bare || r.CommonDir != bare || r.Format != "sha1" || r.Replaced() {
			t.Errorf("bare, from %s: %+v, %v", dir, r, err)
		}
	}
	r, err := gitops.Open(t.Context(), linked)
	gitopstest.Check(t, err)
	if r.CommonDir != w.GitDir || r.WorktreeID() != "linked" || w.WorktreeID() != "" {
		t.Errorf("linked worktree: common %q, ids %q and %q", r.CommonDir, r.WorktreeID(), w.WorktreeID())
	}
	if _, err := gitops.Open(t.Context(), filepath.Join(w.Top, "not there")); err == nil {
		t.Error("a folder that is not there: no error")
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	is := func(name, branch string, commit gitops.OID) {
		t.Helper()
		h, err := w.Head(t.Context())
		if err != nil || h.Branch != branch || h.Commit != commit {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
		if commit != "" && h.Tree != gitops.OID(w.Run("rev-parse", "HEAD^{tree}")) {
			t.Errorf("%s: tree %s", name, h.Tree)
		}
	}
	is("unborn", "refs/heads/main", "")
	a := w.CommitAll(gitopstest.Files{"a": "1"})
	is("branch", "refs/heads/main", a)
	w.Run("checkout", "-q", "--detach")
	is("detached", "", a)
	w.Run("checkout", "-q", "--orphan", "feat/x")
	is("orphan", "refs/heads/feat/x", "")
	w.Run("checkout", "-q", "-f", "main")
	gitopstest.Check(t, os.WriteFile(filepath.Join(w.GitDir, "refs/heads/main"), []byte(strings.Repeat("ab", 20)+"\n"), 0o644))
	if h, err := w.Head(t.Context()); err == nil {
		t.Errorf("a branch that names no commit: %+v", h)
	}
}

func TestOperation(t *testing.T) {
	t.Parallel()
	for want, do := range map[string]func(w *gitopstest.Repo){
		"":       func(*gitopstest.Repo) {},
		"merge":  func(w *gitopstest.Repo) { _, _ = gitopstest.TryCommand(w.Top, nil, "merge", "-q", "side") },
		"rebase": func(w *gitopstest.Repo) { _, _ = gitopstest.TryCommand(w.Top, nil, "rebase", "-q", "side") },
		"rebase apply": func(w *gitopstest.Repo) {
			_, _ = gitopstest.TryCommand(w.Top, nil, "rebase", "-q", "--apply", "side")
		},
		"cherry-pick": func(w *gitopstest.Repo) { _, _ = gitopstest.TryCommand(w.Top, nil, "cherry-pick", "side") },
		"revert":      func(w *gitopstest.Repo) { _, _ = gitopstest.TryCommand(w.Top, nil, "revert", "--no-edit", "HEAD~1") },
		"bisect":      func(w *gitopstest.Repo) { w.Run("bisect", "start") },
		"am": func(w *gitopstest.Repo) {
			mail := filepath.Join(w.GitDir, "mail")
			gitopstest.Check(w.T, os.WriteFile(mail, []byte(w.Run("format-patch", "-1", "--stdout", "side")), 0o600))
			_, _ = gitopstest.TryCommand(w.Top, nil, "am", "-q", mail)
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := gitopstest.New(t)
			w.CommitAll(gitopstest.Files{"a": "1"})
			w.Run("branch", "side")
			w.CommitAll(gitopstest.Files{"a": "2"})
			w.CommitAll(gitopstest.Files{"a": "3"})
			w.Run("checkout", "-q", "side")
			w.CommitAll(gitopstest.Files{"a": "4"})
			w.Run("checkout", "-q", "main")
			do(w)
			word, _, _ := strings.Cut(want, " ")
			if got := w.Operation(); got != word {
				t.Errorf("%q, want %q; git status says\n%s", got, word, w.Run("status"))
			}
		})
	}
}

func TestOperationOfALinkedWorktree(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	w.CommitAll(gitopstest.Files{"a": "1"})
	linked := filepath.Join(t.TempDir(), "linked")
	w.Run("worktree", "add", "-q", linked)
	w.Run("bisect", "start")
	l := gitopstest.Open(t, linked)
	if got := l.Operation(); got != "" {
		t.Errorf("the main worktree's bisect counts here: %q", got)
	}
	if got := w.Operation(); got != "bisect" {
		t.Errorf("%q, want bisect", got)
	}
}

func TestConfig(t *testing.T) {
	w := gitopstest.New(t)
	w.Run("config", "airlock.memory", "first")
	w.Run("config", "--add", "airlock.memory", "last\nline")
	w.Run("config", "core.hooksPath", ".husky")
	w.Run("config", "filter.LFS.smudge", "x")
	w.Run("config", "airlock.backend", "native")
	gitopstest.Check(t, os.WriteFile(filepath.Join(w.GitDir, "more"), []byte("[airlock]\n\tincluded\n\tempty =\n\tn = 0\n\todd = maybe\n\tbackend = docker\n"), 0o600))
	w.Run("config", "include.path", "more")
	// This is how git gives -c to the commands that it runs.
	t.Setenv("GIT_CONFIG_PARAMETERS", `'airlock.cpus'='2' 'airlock.autoland'='false'`)
	r, err := gitops.Open(t.Context(), w.Top)
	gitopstest.Check(t, err)
	c, err := r.Config(t.Context())
	gitopstest.Check(t, err)
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
		t.Error("maybe is not a boolean")
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
	w := gitopstest.New(t)
	w.CommitAll(gitopstest.Files{"a": "1", "b": "1"})
	w.Write(gitopstest.Files{"a": "2", "new\nline": "x", "c": "y"})
	w.Run("add", "c")
	if n, err := w.Changes(t.Context()); err != nil || n != 3 {
		t.Errorf("Changes: %d, %v, want 3", n, err)
	}
	gitopstest.Check(t, gitops.CheckVersion(t.Context()))
}

func TestHashObjectIsGits(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		w := gitopstest.New(t, "--object-format="+format)
		for _, content := range []string{"", "x", "\x00\xff\n", strings.Repeat("\x00a line\n", 10_000)} {
			if got, want := gitops.HashObject(format, "blob", []byte(content)), w.Blob(content); got != want {
				t.Errorf("%s of %d bytes: %s, git says %s", format, len(content), got, want)
			}
		}
	}
}
