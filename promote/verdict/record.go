// Package verdict records the user's verdicts on pending commits, and lists the commits with their states. A verdict
// lands nothing: the next promotion cycle does.
package verdict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/decision"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Decided is a commit with a new verdict, or the commit of [Request.UpTo].
type Decided struct {
	Inner   gitops.OID
	Commit  gitops.OID // the outer commit, or the inner one if it has not been built
	Subject string     // escaped
	// Unlisted reports that no review has shown the commit, and that no name was its own.
	Unlisted bool
	Kept     bool // the commit of UpTo keeps its verdict to the contrary
}

// Request is a verdict of the user on some commits, which [Record] stores.
type Request struct {
	Word   review.Word
	Reason string
	// Names are numbers that [List] gave, revisions of pending commits, or at least seven digits of inner ones.
	Names []string
	UpTo  string // those of this commit and its ancestors that have no verdict to the contrary; empty: none
	All   bool   // all pending commits that have no verdict to the contrary
	// Dependents extends a rejection to the commits that do not apply without the rejected ones.
	Dependents bool
	// Cycle leaves the lock to the engine's next cycle, so that no other process makes one before. The caller must make it at once.
	Cycle bool
}

// request is a Request, or a listing, between two cycles.
type request struct {
	Request
	*promote.Standing
	e      *promote.Engine
	all    []quarantine.Link  // commits that have not landed, parents first
	left   []gitops.OID       // commits that were left out when later ones landed and that the agent's history still has
	lifted []gitops.RefUpdate // refs of rejected commits that are taken back
	kept   []Decided          // the commit of UpTo, if it keeps its verdict to the contrary
}

// Record records a verdict, and returns the commits that it is about, and the commit of UpTo also if that keeps another verdict. It lands nothing.
// The error wraps [history.ErrNotPending] if a name is not a pending or landed commit. It is a [*ReplacedError] if another commit is in the place
// of the named one.
func Record(ctx context.Context, e *promote.Engine, wanted Request) ([]Decided, error) {
	if len(wanted.Reason) > review.ReasonLimit {
		return nil, review.ErrReason
	}
	q, err := open(ctx, e, wanted)
	if err != nil {
		return nil, err
	}
	leave := q.Close
	defer func() { leave() }()
	ids, err := q.chosen(ctx)
	if err != nil {
		return nil, err
	}
	var decided []Decided
	for batch := ids; len(batch) > 0; {
		made, err := q.record(ctx, batch)
		if err != nil {
			return nil, err
		}
		decided = append(decided, made...)
		if batch = nil; q.Dependents {
			if batch, err = q.dependents(ctx, ids); err != nil {
				return nil, err
			}
			ids = append(ids, batch...)
		}
	}
	if e.Repo.Dry {
		return append(decided, q.kept...), nil
	}
	if wanted.Cycle {
		leave = func() {}
		q.Keep() // and begin to compute what the cycle needs
	}
	err = q.Decisions.Write(e.Dir())
	if err == nil && len(q.lifted) > 0 {
		err = e.Repo.UpdateRefs(ctx, "airlock: approve", q.lifted...)
	}
	for _, d := range decided {
		if err == nil {
			events.Verdict(e.Dir(), e.Record.Session, wanted.Word, d.Commit, d.Subject, wanted.Reason)
		}
	}
	return append(decided, q.kept...), err
}

func open(ctx context.Context, e *promote.Engine, wanted Request) (*request, error) {
	s, err := e.Standing(ctx)
	if err != nil {
		return nil, err
	}
	q := &request{Request: wanted, Standing: s, e: e}
	for _, a := range s.Plan.Earlier {
		q.all = append(q.all, a.Link)
	}
	q.all = append(q.all, s.Links...)
	if q.left, err = q.Inside.LeftOut(ctx, q.Ledger, s.Plan.Tip); err != nil {
		s.Close()
		return nil, err
	}
	return q, nil
}

// chosen returns the inner commits that the verdict is about.
func (q *request) chosen(ctx context.Context) (ids []gitops.OID, err error) {
	within := func(gitops.OID) bool { return q.All }
	var last gitops.OID
	if q.UpTo != "" {
		if last, err = q.named(ctx, q.UpTo); err != nil {
			return nil, err
		}
		within = q.reach(last)
	}
	for _, l := range q.all {
		r := q.Decisions.ReviewOf(l.Commit)
		if within(l.Commit) && !q.Plan.Drops(l.Commit) && (r == nil || r.Word != review.Fix) {
			ids = append(ids, l.Commit)
		}
	}
	for _, name := range q.Names {
		id, err := q.named(ctx, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if last != "" && !slices.Contains(ids, last) && !q.Ledger.Has(last) {
		q.kept = append(q.kept, Decided{Inner: last, Kept: true})
	}
	return ids, nil
}

// reach returns a function that reports whether a commit has not landed and is a given one or an ancestor of it. The order of the list does not
// show that: other commits come before it or after it by their dates, which the agent chooses.
func (q *request) reach(id gitops.OID) func(gitops.OID) bool {
	parents, reached := map[gitops.OID][]gitops.OID{}, map[gitops.OID]bool{}
	for _, l := range q.all {
		parents[l.Commit] = l.Parents
	}
	for todo := []gitops.OID{id}; len(todo) > 0; {
		id := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; !reached[id] {
			reached[id] = true
			todo = append(todo, parents[id]...)
		}
	}
	return func(id gitops.OID) bool { return reached[id] }
}

// find returns the inner commit of a name: a pending one, a rejected one, or one that has landed. An agent can make
// commits whose first digits are those of another one. The error wraps [history.ErrAmbiguous] for such a name.
func (q *request) find(ctx context.Context, name string) (gitops.OID, error) {
	revision, _ := q.e.Repo.Commit(ctx, name)
	if id := q.Ledger.Former(revision); id != "" {
		revision = cmp.Or(q.outerOf(id), revision)
	}
	if id, err := q.numbered(name, revision); err != nil || id != "" {
		return id, err
	}
	link, _, err := q.Plan.Find(name, revision)
	if errors.Is(err, history.ErrAmbiguous) {
		return "", err
	}
	id := cmp.Or(link.Commit, q.decidedAs(revision))
	for _, short := range q.abbreviated(name) {
		if id != "" && id != short {
			return "", fmt.Errorf("commit %q: %w", gitops.Text(name), history.ErrAmbiguous)
		}
		id = short
	}
	if id == "" {
		return "", err
	}
	return id, nil
}

// decidedAs returns the inner commit of an outer one that has a verdict or has landed, or empty.
func (q *request) decidedAs(revision gitops.OID) gitops.OID {
	if revision == "" {
		return ""
	}
	for _, r := range q.Decisions.Reviewed {
		if r.Word != review.Seen && r.Commit == revision && q.there(r.Inner) {
			return r.Inner
		}
	}
	for _, p := range q.Ledger.Landed {
		if p.Outer == revision && q.Word == review.Approve {
			return p.Inner
		}
	}
	return ""
}

// abbreviated returns the inner commits that begin with some digits.
func (q *request) abbreviated(name string) (found []gitops.OID) {
	for _, r := range q.Decisions.Reviewed {
		if r.Word != review.Seen && history.Abbreviates(name, r.Inner) && q.there(r.Inner) {
			found = append(found, r.Inner)
		}
	}
	for _, l := range q.all {
		if history.Abbreviates(name, l.Commit) {
			found = append(found, l.Commit)
		}
	}
	return found
}

// there reports whether the agent's history has an inner commit that waits, or that was left out when later commits landed.
func (q *request) there(inner gitops.OID) bool {
	return slices.Contains(q.left, inner) || slices.ContainsFunc(q.all, func(l quarantine.Link) bool { return l.Commit == inner })
}

// outerOf returns the outer commit of an inner one, or empty if it has not been built.
func (q *request) outerOf(inner gitops.OID) gitops.OID {
	for _, t := range q.Ledger.Tail {
		if t.Inner == inner {
			return t.Outer
		}
	}
	if p, landed := q.Ledger.Image(inner); landed {
		return p.Outer
	}
	if r := q.Decisions.ReviewOf(inner); r != nil {
		return r.Commit
	}
	return ""
}

// record adds the verdict on some commits to the decisions. It also writes the notes, except those that the next cycle writes.
func (q *request) record(ctx context.Context, ids []gitops.OID) ([]Decided, error) {
	all, err := q.Inside.About(ctx, ids...)
	if err != nil {
		return nil, err
	}
	patches, err := q.patches(ctx, ids)
	if err != nil {
		return nil, err
	}
	numbers, err := ledger.ReadNumbers(q.e.Dir())
	if err != nil {
		return nil, err
	}
	var decided []Decided
	for i := range all {
		r := &all[i]
		r.Verdict = review.Verdict{Word: q.Word, By: q.Settings.User.String(), At: ledger.Timestamp(q.Now), Inner: r.Inner, Commit: q.outerOf(r.Inner), Reason: q.Reason}
		r.Unwritten = q.waits(r.Inner) || r.Commit == "" // it has no outer commit before a cycle builds it
		decided = append(decided, Decided{Inner: r.Inner, Commit: cmp.Or(r.Commit, r.Inner), Subject: r.Subject, Unlisted: (q.All || q.UpTo != "") && numbers.Of[r.Inner] == 0})
		if err := q.replace(ctx, r, q.Decisions.ReviewOf(r.Inner)); err != nil {
			return nil, err
		}
	}
	if !q.e.Repo.Dry {
		if err := q.publish(ctx, all, patches); err != nil {
			return nil, err
		}
	}
	parents := map[gitops.OID]gitops.OID{}
	for _, l := range q.all {
		parents[l.Commit] = decision.FirstParent(l)
	}
	for _, r := range all {
		q.Decisions = q.Decisions.Review(r, parents[r.Inner])
	}
	return decided, nil
}

// replace copies the seen files and the number from the verdict before, which may be nil, to a new one. An approval removes the ref of the
// rejected commit.
func (q *request) replace(ctx context.Context, r, before *ledger.Reviewed) error {
	if before == nil {
		return nil
	}
	if r.Paths = before.Paths; before.Number == 0 {
		return nil
	}
	ref := rejectedRef(q.e, before.Number)
	old, err := q.e.Repo.Ref(ctx, ref)
	if r.Number = before.Number; q.Word == review.Approve && old != "" {
		q.lifted, r.Number = append(q.lifted, gitops.RefUpdate{Ref: ref, Old: old}), 0
	}
	return err
}

// waits reports whether the next cycle writes the verdict on an inner commit, in the transaction that lands the commit or makes it
// pending again.
func (q *request) waits(inner gitops.OID) bool {
	return q.Word == review.Approve && slices.ContainsFunc(q.Ledger.Tail, func(t ledger.Pair) bool { return t.Inner == inner })
}

// patches returns the patch-ids of the outer commits of inner commits. It leaves out commits whose verdict the next cycle writes.
func (q *request) patches(ctx context.Context, inner []gitops.OID) (map[gitops.OID]string, error) {
	var outer []gitops.OID
	for _, id := range inner {
		if o := q.outerOf(id); o != "" && !q.waits(id) {
			outer = append(outer, o)
		}
	}
	if q.e.Repo.Dry {
		return nil, nil
	}
	return q.e.Repo.PatchIDs(ctx, outer)
}

// publish writes verdicts into the notes of their outer commits, and makes refs for rejected commits. It starts the same
// number of processes for any number of commits.
func (q *request) publish(ctx context.Context, all []ledger.Reviewed, patches map[gitops.OID]string) error {
	direct := func(r ledger.Reviewed) bool { return r.Commit != "" && !r.Unwritten }
	if !slices.ContainsFunc(all, direct) {
		return nil
	}
	_, inspector, err := q.Bridge(ctx)
	if err != nil {
		return err
	}
	free, err := q.freeNumber(ctx)
	if err != nil {
		return err
	}
	var notes []quarantine.Note
	var refs []gitops.RefUpdate
	for i := range all {
		r := &all[i]
		if !direct(*r) {
			continue
		}
		c, err := inspector.Commit(ctx, r.Commit)
		if err != nil {
			return err
		}
		r.Tree, r.Patch = c.Tree, patches[r.Commit]
		note, err := q.noteWith(ctx, inspector, r.Verdict)
		if err != nil {
			return err
		}
		notes = append(notes, note)
		if r.Word != review.Approve && r.Number == 0 {
			r.Number = free
			refs = append(refs, gitops.RefUpdate{Ref: rejectedRef(q.e, free), New: r.Commit})
			free++
		}
	}
	if err := q.note(ctx, notes, refs...); err != nil {
		return fmt.Errorf("write the verdict: %w", err)
	}
	return nil
}

// noteWith returns the note of an outer commit with one more verdict.
func (q *request) noteWith(ctx context.Context, inspector *quarantine.Inspector, v review.Verdict) (quarantine.Note, error) {
	line, err := v.Line()
	if err != nil {
		return quarantine.Note{}, err
	}
	text, err := q.noteOf(ctx, inspector, v.Commit)
	return quarantine.Note{Commit: v.Commit, Text: review.Add(text, line)}, err
}

// noteOf returns the note with the verdicts on an outer commit, or empty.
func (q *request) noteOf(ctx context.Context, inspector *quarantine.Inspector, outer gitops.OID) (string, error) {
	tip, err := q.e.Repo.Ref(ctx, review.NotesRef)
	if err != nil || tip == "" {
		return "", err
	}
	text, err := inspector.NoteOf(ctx, tip, outer)
	return string(text), err
}

// freeNumber returns a number that no ref of a rejected commit has, including those that a kill left without a verdict.
func (q *request) freeNumber(ctx context.Context) (n int, err error) {
	refs, err := q.e.Repo.Refs(ctx, q.e.Record.Ref("rejected"))
	for name := range refs {
		if taken, err := strconv.Atoi(path.Base(name)); err == nil {
			n = max(n, taken)
		}
	}
	for _, r := range q.Decisions.Reviewed {
		n = max(n, r.Number)
	}
	return n + 1, err
}

// rejectedRef returns the ref of a commit that was rejected, or that the agent must fix.
func rejectedRef(e *promote.Engine, n int) string { return e.Record.Ref(fmt.Sprintf("rejected/%d", n)) }

// readLedger reads the ledger without a lock.
func readLedger(ctx context.Context, e *promote.Engine) (*ledger.Ledger, error) {
	r := e.Record
	refs, err := e.Repo.Refs(ctx, r.Ref("promoted"), r.Ref("pending"))
	if err != nil {
		return nil, err
	}
	return ledger.Read(e.Dir(), ledger.Pair{Inner: r.Root, Outer: r.Base}, refs[r.Ref("promoted")], refs[r.Ref("pending")])
}

// AllLanded reports whether all the given commits have landed.
func AllLanded(ctx context.Context, e *promote.Engine, decided []Decided) (bool, error) {
	l, err := readLedger(ctx, e)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(decided, func(d Decided) bool { return !l.Has(d.Inner) }), nil
}
