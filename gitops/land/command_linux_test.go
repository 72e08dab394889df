package land

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

func TestUnsafeSubcommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"git", "stash"}, "stash"},
		{[]string{"git", "-c", "remote.origin.uploadpack=x", "pull", "--ff-only"}, "pull"},
		{[]string{"/usr/bin/git", "--literal-pathspecs", "stash", "push", "--all"}, "stash"},
		{[]string{"git", "-C", "stash", "-c", "a.b=stash", "--git-dir", "x", "--work-tree=y", "rebase"}, "rebase"},
		{[]string{"/usr/lib/git-core/git-stash", "push"}, "stash"},
		{[]string{"git", "commit", "-m", "x"}, "commit"},
		{[]string{"git", "commit-tree", "x"}, ""},
		{[]string{"git", "log", "stash"}, ""},
		{[]string{"git", "-C", "stash"}, ""},
		{[]string{"git", "fsmonitor--daemon", "run"}, ""},
		{[]string{"git-lfs", "stash"}, ""},
		{[]string{""}, ""},
		{nil, ""},
	} {
		if got := unsafeSubcommand(c.args); got != c.want {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
	}
}

// TestLandWaitsForAStash lands while a git stash waits for the user's answer, and after it has ended.
func TestLandWaitsForAStash(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a": "1\n", "b": "1\n", "d/x": "1\n"})
	new := w.Built(old, gitopstest.Files{"a": "1\n", "b": "2\n", "d/x": "1\n"})
	otherOld := other.CommitAll(gitopstest.Files{"a": "1\n"})
	w.Write(gitopstest.Files{"a": "mine\n"})
	cmd := exec.CommandContext(t.Context(), "git", "stash", "push", "--patch")
	cmd.Dir = filepath.Join(w.Top, "d") // git changes to the top
	in, err := cmd.StdinPipe()
	gitopstest.Check(t, err)
	out, err := cmd.StdoutPipe()
	gitopstest.Check(t, err)
	gitopstest.Check(t, cmd.Start())
	if _, err := out.Read(make([]byte, 1)); err != nil { // it shows the change
		t.Fatal(err)
	}
	rest()
	before := w.picture()
	var command *CommandError
	err = Land(t.Context(), w.Repository, w.landing(old, new))
	if !errors.As(err, &command) || !errors.Is(err, ErrUnfinished) || *command != (CommandError{PID: cmd.Process.Pid, Subcommand: "stash"}) {
		t.Errorf("Land: %v, want that git stash %d is at work", err, cmd.Process.Pid)
	}
	w.picture().equals(t, before)
	w.NothingLeft()
	other.land(otherOld, other.Built(otherOld, gitopstest.Files{"a": "2\n"})) // a stash elsewhere does not matter
	gitopstest.Check(t, in.Close())
	_ = cmd.Wait() // without an answer it stashes nothing
	rest()
	if err := Land(t.Context(), w.Repository, w.landing(old, new)); err != nil {
		t.Errorf("Land: %v", err)
	}
	w.landed(new)
}

// TestLandWaitsForAPull lands while a git pull waits for the other side, and after it has ended.
func TestLandWaitsForAPull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a": "1\n", "b": "1\n"})
	new := w.Built(old, gitopstest.Files{"a": "1\n", "b": "2\n"})
	fifo, origin := filepath.Join(t.TempDir(), "fifo"), t.TempDir()
	gitopstest.Check(t, syscall.Mkfifo(fifo, 0o600))
	w.Run("clone", "-q", "--bare", w.Top, origin)
	cmd := exec.CommandContext(t.Context(), "git", "pull", "-q", "--ff-only", "--upload-pack", "cat "+fifo+"; git-upload-pack", origin, "HEAD")
	cmd.Dir = w.Top
	gitopstest.Check(t, cmd.Start())
	answer, err := os.OpenFile(fifo, os.O_WRONLY, 0) // waits for the reader
	gitopstest.Check(t, err)
	var command *CommandError
	err = Land(t.Context(), w.Repository, w.landing(old, new))
	if !errors.As(err, &command) || *command != (CommandError{PID: cmd.Process.Pid, Subcommand: "pull"}) {
		t.Errorf("Land: %v, want that git pull %d is at work", err, cmd.Process.Pid)
	}
	gitopstest.Check(t, answer.Close())
	gitopstest.Check(t, cmd.Wait())
	w.land(old, new)
}

// TestLandWaitsForACommit lands while a git commit waits for its editor, and after it has ended.
func TestLandWaitsForACommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a": "1\n", "b": "1\n"})
	new := w.Built(old, gitopstest.Files{"a": "1\n", "b": "2\n"})
	w.Write(gitopstest.Files{"a": "mine\n"})
	w.Run("add", "a")
	cmd := exec.CommandContext(t.Context(), "git", "-c", "core.editor=read line; echo mine >", "commit", "-q")
	cmd.Dir = w.Top
	in, err := cmd.StdinPipe()
	gitopstest.Check(t, err)
	gitopstest.Check(t, cmd.Start())
	for gone := time.Now().Add(time.Minute); ; rest() {
		var command *CommandError
		err := Land(t.Context(), w.Repository, w.landing(old, new))
		if errors.As(err, &command) && *command == (CommandError{PID: cmd.Process.Pid, Subcommand: "commit"}) {
			break
		}
		if !errors.Is(err, ErrUnfinished) && !errors.Is(err, ErrIndexLocked) || time.Now().After(gone) {
			t.Fatalf("Land: %v, want that git commit %d is at work", err, cmd.Process.Pid)
		}
	}
	w.NothingLeft()
	_, err = in.Write([]byte("\n"))
	gitopstest.Check(t, err)
	gitopstest.Check(t, cmd.Wait())
	rest()
	mine := gitops.OID(w.Run("rev-parse", "HEAD"))
	w.land(mine, w.Built(mine, gitopstest.Files{"a": "mine\n", "b": "2\n"}))
}

// TestLandBesideStashes lands one commit after the other while the user stashes files in a loop. No stash may fail after
// it has changed something. AIRLOCK_TEST_RACES is the number of stashes.
func TestLandBesideStashes(t *testing.T) {
	t.Parallel()
	rounds := 10
	if text := os.Getenv("AIRLOCK_TEST_RACES"); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		gitopstest.Check(t, err)
	}
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"mine": "1\n", "landed": "0\n"})
	ctx, cancel := context.WithCancel(t.Context())
	landings, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); w.landUntil(ctx, old, landings) }()
	defer func() { cancel(); <-done }()
	for round := range rounds {
		files := gitopstest.Files{"mine": fmt.Sprint("mine ", round, "\n")}
		for i := range 200 {
			files[fmt.Sprint("new ", i)] = fmt.Sprint(round, "\n")
		}
		w.Write(files)
		before := w.At("refs/stash")
		select { // the next landing is being prepared from now on
		case <-landings:
		case <-done:
			return
		}
		out, err := gitopstest.TryCommand(w.Top, nil, "stash", "push", "-q", "--all", "--", ".")
		if err == nil {
			continue
		}
		// It may fail at once, as any command may while a landing holds the lock. Then nothing has changed.
		if w.At("refs/stash") != before {
			t.Fatalf("round %d: git stash failed half-way: %v %s", round, err, out)
		}
		for name := range files {
			if _, err := os.Lstat(filepath.Join(w.Top, name)); err != nil {
				t.Fatalf("round %d: git stash failed half-way: %v", round, err)
			}
		}
	}
}

// landUntil lands commits until ctx ends, and sends after each landing.
func (w *world) landUntil(ctx context.Context, old gitops.OID, landings chan<- struct{}) {
	for n := 1; ; n++ {
		new := w.Built(old, gitopstest.Files{"mine": "1\n", "landed": fmt.Sprint(n, "\n")})
		for {
			err := Land(ctx, w.Repository, w.landing(old, new))
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				break
			}
			if !errors.Is(err, ErrUnfinished) && !errors.Is(err, ErrIndexLocked) && !errors.Is(err, gitops.ErrRefMoved) {
				w.T.Error(err)
				return
			}
			time.Sleep(time.Millisecond)
		}
		old = new
		select {
		case landings <- struct{}{}:
		case <-ctx.Done():
			return
		default: // the user is busy
		}
	}
}

// BenchmarkRunning measures the search for commands of the user among all processes of the machine.
func BenchmarkRunning(b *testing.B) {
	top := b.TempDir()
	for b.Loop() {
		if running(top) != nil {
			b.Fatal("a command at work in " + top)
		}
	}
}
