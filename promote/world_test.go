package promote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/snapshot"
)

// world is an outer repository with an airlock whose agent works in a plain folder. These tests check how inner
// histories land, and not the isolation of the agent.
type world struct {
	t testing.TB
	*gitops.Repository
	engine *promote.Engine
	record airlock.Record
	inner  string // top of the inner repository
}

// newWithReview makes one in which only approved commits land.
func newWithReview(t testing.TB) *world {
	t.Helper()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.git("config", "airlock.review", "land")
	return w
}

// newReviewed makes one in which the commits one and two wait for a review. Each adds a file of its name.
func newReviewed(t testing.TB) *world {
	t.Helper()
	w := newWithReview(t)
	w.commits("one", "one", "1\n")
	w.commits("two", "two", "2\n")
	w.cycle()
	return w
}

// landedWithoutOlder makes one in which the commit old has landed without the commit before it, older. A word, if there is one, is the verdict on
// older from before that.
func landedWithoutOlder(t testing.TB, word review.Word) *world {
	t.Helper()
	w := newWithReview(t)
	w.commits("older", "older", "1\n")
	w.commits("old", "old", "2\n")
	w.cycle()
	if word != "" {
		w.verdict(word, "because", "older")
	}
	w.verdict(review.Approve, "", "old")
	w.wantLanded("old")
	return w
}

// newWorld makes one with a base commit of the given files.
func newWorld(t testing.TB, format string, base tree) *world {
	t.Helper()
	top := filepath.Join(t.TempDir(), "outer")
	git(t, "", "init", "-q", "--object-format="+format, top)
	for name, f := range base {
		f.write(t, filepath.Join(top, name))
	}
	git(t, top, "add", "-A", "-f")
	git(t, top, "commit", "-q", "--allow-empty", "-m", "base")
	repo, err := gitops.Open(t.Context(), top)
	check(t, err)
	head, err := repo.Head(t.Context())
	check(t, err)
	w := &world{t: t, Repository: repo, record: airlock.Record{
		ID: "7f3a", Session: "20261120T201501Z-7f3a", Phase: airlock.Running, Branch: head.Branch, Workspace: ".work-7f3a", Format: format,
		Base: head.Commit, Ghost: identity.Ghost{Name: "Ghost Writer", Mail: "ghost@inside.example"}, Backend: "none",
		Isolation: airlock.Isolation{Network: "none"},
	}}
	store := airlock.Open(repo)
	dir := store.Dir(w.record.ID)
	w.inner = store.Workspace(w.record)
	check(t, os.MkdirAll(w.inner, 0o700))
	taken, err := snapshot.Take(t.Context(), repo, promote.QuarantineDir(dir), head, nil, w.record.Ghost)
	check(t, err)
	check(t, taken.Fill(t.Context(), workspace(w.inner).Workspace))
	w.record.Root = taken.Root
	check(t, store.Save(w.record))
	check(t, repo.UpdateRefs(t.Context(), "airlock: start", gitops.RefUpdate{Ref: w.record.Ref("base"), New: head.Commit},
		gitops.RefUpdate{Ref: w.record.Ref("promoted"), New: head.Commit}))
	w.engine = newEngine(repo, w.record, w.inner)
	return w
}

// newEngine makes an engine for an airlock, as each process does.
func newEngine(repo *gitops.Repository, r airlock.Record, inner string) *promote.Engine {
	return &promote.Engine{Repo: repo, Store: airlock.Open(repo), Record: r,
		Open: func(context.Context) (promote.Exporter, error) { return workspace(inner), nil }}
}

// exporter is an exporter without a prison.
type exporter struct{ inner.Workspace }

func workspace(top string) exporter {
	return exporter{inner.Workspace{Dir: top, Scratch: filepath.Join(top, ".git/scratch"), Run: func(ctx context.Context, p inner.Process) (int, error) {
		cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
		cmd.Dir, cmd.Env = top, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + top}, p.Env...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, p.Stdout, p.Stderr
		cmd.WaitDelay = time.Minute // reading what is left in the pipes takes more than a second on a busy machine
		err := cmd.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) && ctx.Err() == nil {
			return exit.ExitCode(), nil
		}
		return 0, err
	}}}
}

// Watch checks the inner main every few milliseconds.
func (x exporter) Watch(ctx context.Context) (<-chan struct{}, error) {
	changed := make(chan struct{}, 1)
	go func() {
		for before := ""; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
			now, err := os.ReadFile(filepath.Join(x.Dir, ".git", inner.Main))
			if err != nil || string(now) == before {
				continue
			}
			before = string(now)
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return changed, nil
}

func (exporter) Close() error { return nil }

// cycle makes a promotion cycle.
func (w *world) cycle() ledger.Outcome {
	w.t.Helper()
	o, err := w.engine.Drain(w.t.Context(), promote.Options{})
	check(w.t, err)
	return o
}

// git runs git as the user would.
func (w *world) git(args ...string) string {
	w.t.Helper()
	return git(w.t, w.Top, args...)
}

func (w *world) ref(name string) gitops.OID {
	w.t.Helper()
	id, err := w.Ref(w.t.Context(), name)
	check(w.t, err)
	return id
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(out, "\n")
}

// tryGit runs git with an input and returns its raw output.
func tryGit(dir, stdin string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %q: %w: %s", args, err, &stderr)
	}
	return string(out), err
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// objects reads objects by their names. Each must exist.
func (w *world) objects(ids []gitops.OID) map[gitops.OID]string {
	w.t.Helper()
	found := map[gitops.OID]string{}
	if len(ids) == 0 {
		return found
	}
	var in strings.Builder
	for _, id := range ids {
		fmt.Fprintln(&in, id)
	}
	rest, err := tryGit(w.Top, in.String(), "cat-file", "--batch")
	check(w.t, err)
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		var id, kind string
		var size int
		if n, _ := fmt.Sscanf(line, "%s %s %d", &id, &kind, &size); n != 3 {
			w.t.Fatalf("cat-file: %q", line)
		}
		found[gitops.OID(id)], rest = after[:size], after[size+1:]
	}
	return found
}

// notes reads all provenance notes, by commit.
func (w *world) notes() map[gitops.OID]string {
	w.t.Helper()
	notes := map[gitops.OID]string{}
	if w.ref(promote.NotesRef) == "" {
		return notes
	}
	var blobs []gitops.OID
	of := map[gitops.OID]gitops.OID{}
	for line := range strings.Lines(w.git("notes", "--ref="+promote.NotesRef, "list")) {
		fields := strings.Fields(line)
		blobs = append(blobs, gitops.OID(fields[0]))
		of[gitops.OID(fields[1])] = gitops.OID(fields[0])
	}
	texts := w.objects(blobs)
	for commit, blob := range of {
		notes[commit] = texts[blob]
	}
	return notes
}

// nothingLeft checks that no lock, journal, temporary file or scratch directory is left, and that all objects are
// valid.
func (w *world) nothingLeft() {
	w.t.Helper()
	check(w.t, filepath.WalkDir(w.CommonDir, func(p string, d fs.DirEntry, err error) error {
		if p == w.inner {
			return fs.SkipDir // the agent's files may have any name
		}
		base := filepath.Base(p)
		for _, prefix := range []string{"tmp_", ".tmp-", "landing-", "fast_import_crash", "bridge", "journal"} {
			if strings.HasPrefix(base, prefix) {
				w.t.Errorf("left over: %s", p)
			}
		}
		named := base == "cycle.lock" || base == "daemon.lock" // files of flock(2), which stay
		if strings.HasSuffix(base, ".lock") && !named || strings.HasSuffix(base, ".new") || strings.HasSuffix(base, ".keep") {
			w.t.Errorf("left over: %s", p)
		}
		return err
	}))
	if out, err := tryGit(w.Top, "", "fsck", "--strict", "--no-dangling", "--no-progress"); err != nil || out != "" {
		w.t.Errorf("git fsck: %v %s", err, out)
	}
}
