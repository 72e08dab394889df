package promote_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/undo"
)

// view is what an undo restores: refs, index and working tree.
type view struct {
	Refs, Index string
	Files       tree
}

func (w *world) view() view {
	w.t.Helper()
	refs := w.git("for-each-ref", "--format=%(objectname) %(refname)")
	var kept []string
	for line := range strings.Lines(refs + "\n") {
		if !strings.HasSuffix(line, "/"+operation.Ref+"\n") {
			kept = append(kept, line)
		}
	}
	return view{strings.Join(kept, ""), w.git("ls-files", "--stage"), readTree(w.t, w.Top, ".git", filepath.Base(w.inner))}
}

func (w *world) undo() (operation.Operation, error) { return undo.Undo(w.t.Context(), w.engine, 0) }
func (w *world) redo() (operation.Operation, error) { return undo.Redo(w.t.Context(), w.engine) }

// refuses checks that an error is a refusal with a text in its message.
func (w *world) refuses(err error, want string) {
	w.t.Helper()
	var refused *undo.Refused
	if !errors.As(err, &refused) || !strings.Contains(refused.Message, want) {
		w.t.Fatalf("%v, want a refusal with %q", err, want)
	}
}

// TestUndoAndRedoAreExact lands random histories and then undoes and redoes at random, with kills at each step of a landing,
// while the user has changes that are not committed. Refs, notes, index and files are those of the time before, nothing
// lands by itself, and undoing everything restores the start.
func TestUndoAndRedoAreExact(t *testing.T) {
	t.Parallel()
	eachSeed(t, seeds(t, 4), func(t *testing.T, format string, seed uint64) {
		base := tree{"a": plain("a\n"), "lib/a": plain("a\n")}
		w := newWorld(t, format, base)
		a := newAgent(w, base, seed)
		r := rand.New(rand.NewPCG(seed, 11))
		plain("untracked\n").write(t, filepath.Join(w.Top, ownFolder, "1"))
		plain("staged\n").write(t, filepath.Join(w.Top, ownFolder, "2"))
		w.git("add", "-f", ownFolder+"/2")
		views := []view{w.view()}
		for range 3 {
			for range 1 + r.IntN(4) {
				a.step()
			}
			a.publish()
			w.ageIndex()
			if o := w.cycle(); o.Landed > 0 {
				views = append(views, w.view())
			}
		}
		w.walk(r, views)
		w.cycle() // removes what killed processes left
		w.nothingLeft()
	})
}

// ageIndex makes the index look old. While it is young and has staged changes, a landing waits, and its commits are pending
// with their notes before it.
func (w *world) ageIndex() {
	w.t.Helper()
	check(w.t, os.Chtimes(filepath.Join(w.GitDir, "index"), time.Time{}, time.Now().Add(-time.Hour)))
}

// walk undoes and redoes at random, and everything in the end. views[i] is the view after i landings, which have all been
// made.
func (w *world) walk(r *rand.Rand, views []view) {
	w.t.Helper()
	at := len(views) - 1
	for i := range 10 {
		do, to := "undo", at-1
		if i < 7 && r.IntN(2) == 0 {
			do, to = "redo", at+1
		}
		var err error
		killed := ""
		switch {
		case r.IntN(3) == 0:
			killed = one(r, killSteps)
			w.killedAt(killed, do)
			check(w.t, w.engine.Recover(w.t.Context()))
		case do == "undo":
			_, err = w.undo()
		default:
			_, err = w.redo()
		}
		if to < 0 || to >= len(views) {
			if killed == "" && !errors.Is(err, operation.ErrNothing) {
				w.t.Fatalf("%s of nothing: %v", do, err)
			}
			continue
		}
		check(w.t, err)
		if killed == "" || !reflect.DeepEqual(w.view(), views[at]) {
			at = to
		}
		if r.IntN(2) == 0 {
			w.cycle() // lands nothing by itself
		}
		if got := w.view(); !reflect.DeepEqual(got, views[at]) {
			w.t.Fatalf("step %d, %s, killed %q: %v\nwant the view after %d landings: %v", i, do, killed, got, at, views[at])
		}
	}
	for ; at > 0; at-- {
		_, err := w.undo()
		check(w.t, err)
	}
	if got := w.view(); !reflect.DeepEqual(got, views[0]) {
		w.t.Fatalf("everything is undone: %v\nwant %v", got, views[0])
	}
}

// killedAt lets another process undo or redo, which is killed at a step if it gets there.
func (w *world) killedAt(step, do string) {
	w.t.Helper()
	request, err := json.Marshal(daemonRequest{w.Top, w.inner, w.record.ID, do})
	check(w.t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), daemonVariable+"="+string(request), "AIRLOCK_TEST_KILL="+step)
	_ = cmd.Run()
}

// TestUndoWithTheUsersWork undoes after commits, changes and pushes of the user, and lets the agent amend what was undone.
func TestUndoWithTheUsersWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	if _, err := w.undo(); !errors.Is(err, operation.ErrNothing) {
		t.Fatal(err)
	}
	w.commits("one", "one", "1\n")
	w.cycle()
	start := w.tip()
	w.commits("two", "two", "2\n")
	w.commits("three", "a", "a\nthree\n")
	w.wantLanded("three two one")
	landed, three := w.tip(), w.innerOf("three")

	// The user's changes of landed paths, and ignored files in their place, stay.
	for _, change := range []string{"echo mine >>two", "echo mine >>a; git add a", "rm two; mkdir two; echo mine >two/x; echo two >>.git/info/exclude"} {

		sh := func(script string) { git(t, w.Top, "-c", "alias.sh=!"+script, "sh") }
		sh(change)
		_, err := w.undo()
		w.refuses(err, "not committed: ")
		if w.tip() != landed || w.states() != "" {
			t.Fatalf("%s: %s", change, w.states())
		}
		sh("rm -r two; git reset -q --hard; : >.git/info/exclude")
	}
	// A remote has them.
	w.git("update-ref", "refs/remotes/origin/main", "HEAD~1")
	_, err := w.undo()
	w.refuses(err, "origin/main has commits of operation 2")
	w.git("update-ref", "-d", "refs/remotes/origin/main")
	_, err = undo.Undo(t.Context(), w.engine, 1)
	w.refuses(err, "operation 2 landed after it")

	// The agent amends what was undone, and its new commits land without the rest.
	o, err := w.undo()
	check(t, err)
	if o.Number != 2 || w.tip() != start || w.ref(w.record.Ref("promoted")) != start {
		t.Fatalf("%+v, %s", o, w.tip())
	}
	w.wantStates("two:undone three:undone")
	w.wantLanded("one")
	w.agent("reset", "-q", "--hard", "HEAD~2")
	w.commits("two, mended", "two", "22\n")
	w.wantLanded("two, mended one")
	if note := w.notes()[w.tip()]; noteValue(note, "Tree") != "exact" {
		t.Errorf("the note: %s", note)
	}
	if _, err := w.redo(); !errors.Is(err, operation.ErrNothing) {
		t.Errorf("a redo after another landing: %v", err)
	}
	w.agent("cherry-pick", three)
	w.wantLanded("two, mended one") // the same change again
	w.wantStates("three:undone")

	// If the user has a commit on top, a revert is needed.
	w.git("commit", "-q", "--allow-empty", "-m", "mine")
	_, err = w.undo()
	w.refuses(err, "has moved since operation 4")
	o, made, err := undo.Revert(t.Context(), w.engine, 0)
	check(t, err)
	if o.Number != 4 || made != w.tip() || w.git("show", "-s", "--format=%s", string(made)) != `Revert "two, mended"` || w.git("status", "--porcelain", "--untracked-files=no") != "" {
		t.Errorf("%+v, %s", o, w.git("log", "-2", "--stat"))
	}
	if w.git("rev-parse", "HEAD^{tree}") != w.git("rev-parse", string(start)+"^{tree}") {
		t.Error("the revert left something")
	}
	w.wantLanded(`Revert "two, mended" mine two, mended one`)
	_, _, err = undo.Revert(t.Context(), w.engine, 0) // operation 1
	check(t, err)
	if _, _, err = undo.Revert(t.Context(), w.engine, 0); !errors.Is(err, operation.ErrNothing) {
		t.Error(err)
	}
	chain, err := undo.List(t.Context(), w.engine)
	check(t, err)
	var kinds []string
	for _, o := range chain {
		kinds = append(kinds, string(o.Kind))
	}
	if got := strings.Join(kinds, " "); got != "land land undo land revert revert" {
		t.Errorf("operations: %s", got)
	}
	w.nothingLeft()
}

// TestUndoneIsApproved approves a commit that was undone: it lands again, on top of what has landed since.
func TestUndoneIsApproved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.commits("one", "one", "1\n")
	w.wantLanded("one")
	_, err := w.undo()
	check(t, err)
	w.commits("two", "two", "2\n")
	w.wantLanded("two")
	w.wantStates("one:undone")
	w.verdict(review.Approve, "after all", "one")
	w.wantLanded("one two")
	w.wantStates("")
	if o := w.cycle(); len(o.Holds) > 0 {
		t.Errorf("%+v", o)
	}
}

// TestUndoneIsApprovedAtOnce approves commits that were undone in the same second: they are built with the same ids, and land.
func TestUndoneIsApprovedAtOnce(t *testing.T) {
	t.Parallel()
	w := newReviewed(t)
	for range 5 {
		w.verdict(review.Approve, "", "one")
		w.wantLanded("one")
		w.wantStates("two:new")
		_, err := w.undo()
		check(t, err)
	}
}
