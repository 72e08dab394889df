package promote_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// verdict records a verdict on the pending commit with a subject.
func (w *world) verdict(word review.Word, reason string, subjects ...string) {
	w.t.Helper()
	j := verdict.Request{Word: word, Reason: reason}
	for _, s := range subjects {
		j.Names = append(j.Names, w.innerOf(s))
	}
	_, err := verdict.Record(w.t.Context(), w.engine, j)
	check(w.t, err)
}

// leaveOut leaves commits out, as promote --drop does.
func (w *world) leaveOut(names ...string) ([]verdict.Decided, error) {
	return verdict.Record(w.t.Context(), w.engine, verdict.Request{Word: review.Reject, Names: names})
}

// innerOf returns the newest inner commit with a subject.
func (w *world) innerOf(subject string) string {
	w.t.Helper()
	return strings.TrimSpace(w.agent("log", "-1", "--format=%H", "--all", "--grep=^"+subject+"$"))
}

// states returns the subjects and states of the commits to review.
func (w *world) states() string {
	w.t.Helper()
	list, err := verdict.List(w.t.Context(), w.engine)
	check(w.t, err)
	var words []string
	for _, r := range list {
		words = append(words, r.Subject+":"+string(r.State))
	}
	return strings.Join(words, " ")
}

func (w *world) wantStates(want string) {
	w.t.Helper()
	if got := w.states(); got != want {
		w.t.Fatalf("states %q, want %q", got, want)
	}
}

func (w *world) wantLanded(want string) ledger.Outcome {
	w.t.Helper()
	o := w.cycle()
	if w.subjects() != want {
		w.t.Fatalf("%q has landed, want %q: %+v", w.subjects(), want, o)
	}
	return o
}

// wantSameTrees checks that the branch has what the agent has.
func (w *world) wantSameTrees() {
	w.t.Helper()
	if outer, inner := w.git("ls-tree", "-r", "HEAD"), w.agent("ls-tree", "-r", "main"); outer != inner {
		w.t.Errorf("the branch has %q, and the agent %q", outer, inner)
	}
}

// TestCloseAfterVerdict checks that an engine that is closed between a verdict and its cycle leaves no lock.
func TestCloseAfterVerdict(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	w.commits("one", "one", "1\n")
	w.cycle()
	_, err := verdict.Record(t.Context(), w.engine, verdict.Request{Word: review.Approve, All: true, Cycle: true})
	check(t, err)
	check(t, w.engine.Close())
	w.engine = newEngine(w.Repository, w.record, w.inner)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if o, err := w.engine.Cycle(ctx, promote.Options{Known: true}); err != nil || o.Landed != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestReviewOfEach approves, rejects and asks for fixes, one commit at a time.
func TestReviewOfEach(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	w.commits("one", "one", "1\n")
	w.commits("two", "two", "2\n")
	w.commits("needstwo", "two", "2\n2\n")
	w.commits("four", "four", "4\n")
	if o := w.wantLanded(""); o.Pending != 4 || !o.Held(ledger.Review) {
		t.Fatalf("%+v", o)
	}
	w.wantStates("one:new two:new needstwo:new four:new")
	w.verdict(review.Approve, "", "four")
	w.wantStates("one:new two:new needstwo:new four:approved")
	if o := w.wantLanded("four"); o.Pending != 3 || !o.Held(ledger.Review) {
		t.Fatalf("%+v", o)
	}
	note := w.notes()[w.tip()]
	if by := noteValue(note, "Reviewed-By"); !strings.Contains(by, "<") || noteValue(note, "Tree") != "merged" || len(noteValues(note, "Without")) != 3 {
		t.Errorf("the note: %s", note)
	}
	lines := review.Parse(w.git("notes", "--ref="+review.NotesRef, "show", "HEAD"))
	if len(lines) != 1 || lines[0].Word != review.Approve || string(lines[0].Inner) != w.innerOf("four") {
		t.Errorf("the verdicts: %+v", lines)
	}
	w.verdict(review.Reject, "not this", "two")
	w.wantStates("one:new two:rejected needstwo:blocked")
	w.verdict(review.Approve, "fine", "one")
	w.wantLanded("one four")
	if two := w.ref(w.record.Ref("rejected/1")); w.git("log", "-1", "--format=%s", string(two)) != "two" {
		t.Errorf("rejected/1 is %s", two)
	}
	// Taking the rejection back lands both, in the agent's order, on top.
	w.verdict(review.Approve, "after all", "two", "needstwo")
	if o := w.wantLanded("needstwo two one four"); o.Pending != 0 || len(o.Holds) != 0 {
		t.Fatalf("%+v", o)
	}
	w.wantSameTrees()
	if w.ref(w.record.Ref("rejected/1")) != "" {
		t.Error("rejected/1 is left")
	}
	w.wantStates("")
	w.nothingLeft()
}

// TestApprovedNeedsALaterVerdict approves a commit at the end before the one that it needs.
func TestApprovedNeedsALaterVerdict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"z": plain("z\n")})
	w.git("config", "airlock.review", "land")
	w.commits("a", "a", "a\n")
	w.commits("b", "b", "b\n")
	w.commits("d", "d", "d\n")
	w.commits("c", "b", "b\nb2\n")
	w.wantLanded("")
	w.verdict(review.Approve, "", "c")
	w.wantLanded("")
	w.verdict(review.Approve, "", "d")
	for range 2 {
		if o := w.wantLanded("d"); o.Pending != 3 {
			t.Fatalf("%+v", o)
		}
		w.wantStates("a:new b:new c:approved")
	}
	if got := w.git("log", "--format=%s", string(w.tip())+".."+string(w.ref(w.record.Ref("pending")))); got != "c\nb\na" {
		t.Errorf("pending: %q", got)
	}
	w.verdict(review.Reject, "no", "b")
	if o := w.wantLanded("d"); w.ref(w.record.Ref("rejected/1")) == "" {
		t.Errorf("%+v", o)
	}
	w.wantStates("a:new b:rejected c:blocked")
	w.verdict(review.Approve, "", "b", "a")
	w.cycle()
	w.wantLanded("c b a d")
	w.nothingLeft()
}

// TestRejectionsTakenBack approves commits before and after each other that were rejected together: all of them land.
func TestRejectionsTakenBack(t *testing.T) {
	t.Parallel()
	w := newReviewed(t)
	w.verdict(review.Reject, "no", "one", "two")
	w.cycle()
	w.commits("three", "three", "3\n")
	w.cycle()
	w.verdict(review.Approve, "", "two", "three")
	if o := w.wantLanded("three two"); o.Landed != 2 {
		t.Errorf("%+v", o)
	}
	w.wantStates("one:rejected")
	w.nothingLeft()
}

// TestEarlierCommitKeepsItsID rejects a commit. The one before it keeps its id, because a colleague may have fetched it and may approve it by that id.
func TestEarlierCommitKeepsItsID(t *testing.T) {
	t.Parallel()
	w := newReviewed(t)
	w.commits("three", "three", "3\n")
	w.cycle()
	one := gitops.OID(w.git("rev-parse", w.record.Ref("pending")+"~2"))
	time.Sleep(time.Second + time.Millisecond) // a commit that is built again now has another date
	w.verdict(review.Reject, "no", "two")
	if o := w.wantLanded(""); o.Pending != 2 || w.git("rev-parse", w.record.Ref("pending")+"~1") != string(one) || noteValue(w.notes()[one], "Policy") != "clean" {
		t.Fatalf("%s is not pending any more, or has no note: %+v", one, o)
	}
	time.Sleep(time.Second + time.Millisecond)
	w.verdict(review.Reject, "no", "three")
	if w.wantLanded(""); w.ref(w.record.Ref("pending")) != one { // and nothing new is pending
		t.Fatalf("%s is not pending any more", one)
	}
	w.verdict(review.Approve, "", "one")
	if w.wantLanded("one"); w.tip() != one {
		t.Errorf("%s has landed, want %s", w.tip(), one)
	}
	w.git("fsck", "--strict", "--no-dangling")
	w.nothingLeft()
}

// TestPendingKeepsItsIDBesideOthers lets another git hold the lock of the notes in two cycles, as another airlock does that lands. A pending commit
// keeps its id and its note.
func TestPendingKeepsItsIDBesideOthers(t *testing.T) {
	t.Parallel()
	w := newReviewed(t)
	pending, lock := w.ref(w.record.Ref("pending")), filepath.Join(w.CommonDir, promote.NotesRef+".lock")
	w.commits("three", "three", "3\n")
	check(t, os.WriteFile(lock, nil, 0o600))
	for range 2 {
		time.Sleep(time.Second + time.Millisecond) // a commit that is built again now has another date
		if o, err := w.engine.Cycle(t.Context(), promote.Options{}); w.ref(w.record.Ref("pending")) != pending {
			t.Fatalf("another commit is pending without the lock of the notes: %+v, %v", o, err)
		}
	}
	check(t, os.Remove(lock))
	if o := w.cycle(); o.Pending != 3 || w.git("rev-parse", w.record.Ref("pending")+"~1") != string(pending) || len(w.notes()) != 3 {
		t.Errorf("%+v, %d notes: %s is not pending any more, or another commit has a note", o, len(w.notes()), pending)
	}
	w.nothingLeft()
}

// TestVerdictsFollow amends and rebases commits that have verdicts.
func TestVerdictsFollow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha256", tree{"a": plain("a\n")})
	w.git("config", "airlock.review", "land")
	w.commits("one", "one", "1\n")
	w.commits("two", "two", "if x:\n  a()\n  b()\n")
	w.commits("three", "three", "3\n")
	w.cycle()
	w.verdict(review.Fix, "tests, please", "one")
	w.verdict(review.Reject, "no", "three")
	w.cycle()
	w.wantStates("one:asked two:new three:rejected")
	// The agent amends one, and rebases the others.
	w.agent("checkout", "-q", "HEAD~2")
	w.agent("commit", "-q", "--amend", "-m", "one, with tests")
	w.agent("rebase", "-q", "--onto", "HEAD", w.innerOf("one")+"", "main")
	if o := w.wantLanded(""); o.Pending != 2 {
		t.Fatalf("%+v", o)
	}
	w.wantStates("one, with tests:changed two:new three:rejected")
	w.verdict(review.Approve, "", "two")
	w.agent("reset", "-q", "--hard", "HEAD~2")
	// White space is a change, although git patch-id ignores it.
	w.commits("two", "two", "if x:\n  a()\nb()\n")
	w.wantLanded("")
	w.wantStates("one, with tests:changed two:changed")
}

// TestVerdictStaysInItsPlace makes an approved commit again, with the same lines in another block of the file that looks the same.
func TestVerdictStaysInItsPlace(t *testing.T) {
	t.Parallel()
	const guest, admin, rest = "guest:\n\ta\n\tb\n\tc\n", "\td\n\te\n\tf\nadmin:\n\ta\n\tb\n\tc\n", "\td\n\te\n\tf\n"
	w := newWorld(t, "sha1", tree{"a": plain(guest + admin + rest)})
	w.git("config", "airlock.review", "land")
	w.commits("other", "b", "b\n")
	w.commits("password", "a", guest+admin+"\tpassword()\n"+rest)
	w.cycle()
	w.verdict(review.Approve, "", "password")
	w.agent("reset", "-q", "--hard", "HEAD~1")
	w.commits("password", "a", guest+"\tpassword()\n"+admin+rest)
	w.wantLanded("")
	w.wantStates("other:new password:changed")
	w.agent("reset", "-q", "--hard", "HEAD~1")
	w.agent("commit", "-q", "--amend", "-m", "another")
	w.commits("password", "a", guest+admin+"\tpassword()\n"+rest)
	w.wantLanded("password")
}

// TestReplacedAfterLanding lets two commits of one subject be replaced. After the first one has landed, the second one is still compared with the
// one that it replaced.
func TestReplacedAfterLanding(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	w.commits("wip", "f", "1\n")
	w.commits("wip", "g", "1\n")
	w.cycle()
	record := func(word review.Word, ids ...string) {
		_, err := verdict.Record(t.Context(), w.engine, verdict.Request{Word: word, Reason: "because", Names: ids})
		check(t, err)
	}
	record(review.Fix, strings.Fields(w.agent("rev-list", "--max-count=2", "HEAD"))...)
	w.agent("reset", "-q", "--hard", "HEAD~2")
	w.commits("wip", "f", "2\n")
	w.commits("wip", "g", "2\n")
	w.cycle()
	before, err := verdict.List(t.Context(), w.engine)
	check(t, err)
	if len(before) != 2 || before[1].Before == "" {
		t.Fatalf("%+v", before)
	}
	record(review.Approve, string(before[0].Inner))
	w.wantLanded("wip")
	after, err := verdict.List(t.Context(), w.engine)
	check(t, err)
	if len(after) != 1 || after[0].Before != before[1].Before {
		t.Errorf("replaces %+v, want %s", after, before[1].Before)
	}
}

// TestVerdictReadsNoWorkspace lands approved commits one by one without a look into the workspace, and then all that is left. The
// ref pending stays as it is until the last one lands, and the notes are there.
func TestVerdictReadsNoWorkspace(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	for _, name := range []string{"one", "two", "three"} {
		w.commits(name, name, name+"\n")
	}
	w.wantLanded("")
	pending := w.git("rev-parse", w.record.Ref("pending"))
	blind := func() ledger.Outcome {
		w.engine = newEngine(w.Repository, w.record, w.inner)
		w.engine.Open = func(context.Context) (promote.Exporter, error) { return nil, errors.New("looked into the workspace") }
		o, err := w.engine.Drain(t.Context(), promote.Options{Known: true})
		check(t, err)
		return o
	}
	w.verdict(review.Approve, "", "one")
	if text := w.git("for-each-ref", review.NotesRef); text != "" {
		t.Errorf("the verdict has a transaction of its own: %s", text)
	}
	if o := blind(); o.Landed != 1 || o.Pending != 2 || w.git("rev-parse", w.record.Ref("pending")) != pending {
		t.Fatalf("%+v, and pending has moved from %s", o, pending)
	}
	w.verdict(review.Approve, "", "two", "three")
	if o := blind(); o.Landed != 2 || w.tip() != gitops.OID(pending) || w.git("for-each-ref", w.record.Ref("pending")) != "" {
		t.Fatalf("%+v, at %s", o, w.tip())
	}
	for id, note := range w.notes() {
		if noteValue(note, "Reviewed-By") == "" {
			t.Errorf("%s: %s", id, note)
		}
	}
	for _, ref := range []string{"HEAD", "HEAD~", "HEAD~2"} {
		if lines := review.Parse(w.git("notes", "--ref="+review.NotesRef, "show", ref)); len(lines) != 1 || lines[0].Patch == "" || lines[0].Tree == "" {
			t.Errorf("%s has the verdicts %+v", ref, lines)
		}
	}
}

// TestVerdictWithoutItsCycle gives a verdict, as a command does that is killed before its cycle. The next cycle writes the verdict into
// the notes, although nothing can land then.
func TestVerdictWithoutItsCycle(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	w.commits("one", "one", "1\n")
	w.wantLanded("")
	w.verdict(review.Approve, "", "one")
	w.git("checkout", "-q", "-b", "other")
	for range 2 { // the second one finds nothing to write
		if o := w.cycle(); o.Landed != 0 {
			t.Fatalf("%+v", o)
		}
		lines := review.Parse(w.git("notes", "--ref="+review.NotesRef, "show", w.record.Ref("pending")))
		if len(lines) != 1 || lines[0].Word != review.Approve || lines[0].Patch == "" {
			t.Errorf("the verdicts: %+v", lines)
		}
	}
	if n := w.git("rev-list", "--count", review.NotesRef); n != "1" {
		t.Errorf("%s commits of notes", n)
	}
	w.git("checkout", "-q", "main")
	w.wantLanded("one")
}

// TestVerdictsOfKilledCommands approves a commit twice with commands that are killed before their cycles, and then rejects it. The next
// cycle writes all verdicts into the notes.
func TestVerdictsOfKilledCommands(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	w.commits("one", "one", "1\n")
	w.wantLanded("")
	request, err := json.Marshal(daemonRequest{w.Top, w.inner, w.record.ID, "approve"})
	check(t, err)
	w.git("config", "user.email", "first@example.org") // the lines differ
	w.killDaemon(string(request), "verdict", patience, false)
	w.git("config", "user.email", "second@example.org")
	w.killDaemon(string(request), "verdict", patience, false)
	w.verdict(review.Reject, "no", "one")
	w.wantLanded("")
	w.wantStates("one:rejected")
	words := map[review.Word]int{}
	for _, l := range review.Parse(w.git("notes", "--ref="+review.NotesRef, "show", w.record.Ref("rejected/1"))) {
		words[l.Word]++
	}
	if words[review.Approve] != 2 || words[review.Reject] != 1 {
		t.Errorf("the verdicts: %v", words)
	}
}

// TestNoCycleBetweenVerdictAndLanding lets another process wait while a command goes from its verdict to its cycle.
func TestNoCycleBetweenVerdictAndLanding(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	w.commits("one", "one", "1\n")
	w.wantLanded("")
	_, err := verdict.Record(t.Context(), w.engine, verdict.Request{Word: review.Approve, All: true, Cycle: true})
	check(t, err)
	atOnce, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err := w.engine.Store.LockFile(atOnce, w.record.ID, promote.CycleLock); !errors.Is(err, airlock.ErrBusy) {
		t.Errorf("another process may begin a cycle: %v", err)
	}
	w.wantLanded("one")
	unlock, err := w.engine.Store.LockFile(t.Context(), w.record.ID, promote.CycleLock)
	check(t, err)
	unlock()
}
