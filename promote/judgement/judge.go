// Package judgement records the user's verdicts on pending commits, and lists the commits with their states. A verdict
// lands nothing: the next promotion cycle does.
package judgement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/build"
	"github.com/git-airlock/git-airlock/promote/decision"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Decided is a commit with a new verdict.
type Decided struct {
	Inner   gitops.OID
	Commit  gitops.OID // the outer commit, or the inner one if it has not been built
	Subject string     // escaped
	// Unlisted reports that no review has shown the commit, and that no name was its own.
	Unlisted bool
}

// Judgement is a verdict of the user on some commits.
type Judgement struct {
	Word   review.Word
	Reason string
	// Names are numbers that [List] gave, revisions of pending commits, or at least seven digits of inner ones.
	Names []string
	UpTo  string // this commit and all before it that have no verdict to the contrary; empty: none
	All   bool   // all pending commits that have no verdict to the contrary
	// Dependents extends a rejection to the commits that do not apply without the rejected ones.
	Dependents bool
	// Cycle leaves the lock to the engine's next cycle, so that no other process makes one before. The caller must make it at once.
	Cycle bool
}

// judgement is the state of one Judge or List.
type judgement struct {
	Judgement
	*promote.Standing
	e      *promote.Engine
	all    []quarantine.Link  // commits that have not landed, parents first
	lifted []gitops.RefUpdate // refs of rejected commits that are taken back
}

// Judge records a verdict, and returns the commits that it is about. It lands nothing. The error wraps
// [history.ErrNotPending] if a name is not a pending or landed commit.
func Judge(ctx context.Context, e *promote.Engine, wanted Judgement) ([]Decided, error) {
	if len(wanted.Reason) > review.ReasonLimit {
		return nil, review.ErrReason
	}
	j, err := open(ctx, e, wanted)
	if err != nil {
		return nil, err
	}
	leave := j.Close
	defer func() { leave() }()
	ids, err := j.chosen(ctx)
	if err != nil {
		return nil, err
	}
	var decided []Decided
	for batch := ids; len(batch) > 0; {
		made, err := j.record(ctx, batch)
		if err != nil {
			return nil, err
		}
		decided = append(decided, made...)
		if batch = nil; j.Dependents {
			if batch, err = j.dependents(ctx, ids); err != nil {
				return nil, err
			}
			ids = append(ids, batch...)
		}
	}
	if e.Repo.Dry {
		return decided, nil
	}
	err = j.Decisions.Write(e.Dir())
	if err == nil && len(j.lifted) > 0 {
		err = e.Repo.UpdateRefs(ctx, "airlock: approve", j.lifted...)
	}
	if err == nil && wanted.Cycle {
		leave = j.Keep
	}
	return decided, err
}

func open(ctx context.Context, e *promote.Engine, wanted Judgement) (*judgement, error) {
	s, err := e.Standing(ctx)
	if err != nil {
		return nil, err
	}
	j := &judgement{Judgement: wanted, Standing: s, e: e}
	for _, a := range s.Plan.Facts.Aside {
		j.all = append(j.all, a.Link)
	}
	j.all = append(j.all, s.Links...)
	return j, nil
}

// chosen returns the inner commits that the verdict is about.
func (j *judgement) chosen(ctx context.Context) (ids []gitops.OID, err error) {
	last := len(j.all)
	if j.UpTo != "" {
		id, err := j.find(ctx, j.UpTo)
		if err != nil {
			return nil, err
		}
		last = 1 + slices.IndexFunc(j.all, func(l quarantine.Link) bool { return l.Commit == id })
	}
	if j.UpTo != "" || j.All {
		for _, l := range j.all[:last] {
			r := j.Decisions.ReviewOf(l.Commit)
			if !j.Plan.Drops(l.Commit) && (r == nil || r.Word != review.Fix) {
				ids = append(ids, l.Commit)
			}
		}
	}
	for _, name := range j.Names {
		id, err := j.find(ctx, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// find returns the inner commit of a name: a pending one, a rejected one, or one that has landed. An agent can make
// commits whose first digits are those of another one. The error wraps [history.ErrAmbiguous] for such a name.
func (j *judgement) find(ctx context.Context, name string) (gitops.OID, error) {
	revision, _ := j.e.Repo.Commit(ctx, name)
	if id, err := j.numbered(name, revision); err != nil || id != "" {
		return id, err
	}
	link, _, err := j.Plan.Find(name, revision)
	if errors.Is(err, history.ErrAmbiguous) {
		return "", err
	}
	id := cmp.Or(link.Commit, j.decidedAs(revision))
	for _, short := range j.abbreviated(name) {
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
func (j *judgement) decidedAs(revision gitops.OID) gitops.OID {
	if revision == "" {
		return ""
	}
	for _, r := range j.Decisions.Reviewed {
		if r.Word != review.Seen && r.Commit == revision && j.there(r.Inner) {
			return r.Inner
		}
	}
	for _, p := range j.Ledger.Landed {
		if p.Outer == revision && j.Word == review.Approve {
			return p.Inner
		}
	}
	return ""
}

// abbreviated returns the inner commits that begin with some digits.
func (j *judgement) abbreviated(name string) (found []gitops.OID) {
	if !history.Digits(name) {
		return nil
	}
	for _, r := range j.Decisions.Reviewed {
		if r.Word != review.Seen && strings.HasPrefix(string(r.Inner), strings.ToLower(name)) && j.there(r.Inner) {
			found = append(found, r.Inner)
		}
	}
	for _, l := range j.all {
		if strings.HasPrefix(string(l.Commit), strings.ToLower(name)) {
			found = append(found, l.Commit)
		}
	}
	return found
}

// there reports whether a commit waits, or was left out when later ones landed.
func (j *judgement) there(inner gitops.OID) bool {
	return slices.Contains(j.Ledger.LeftOut(), inner) || slices.ContainsFunc(j.all, func(l quarantine.Link) bool { return l.Commit == inner })
}

// outerOf returns the outer commit of an inner one, or empty if it has not been built.
func (j *judgement) outerOf(inner gitops.OID) gitops.OID {
	for _, t := range j.Ledger.Tail {
		if t.Inner == inner {
			return t.Outer
		}
	}
	if p, landed := j.Ledger.Image(inner); landed {
		return p.Outer
	}
	if r := j.Decisions.ReviewOf(inner); r != nil {
		return r.Commit
	}
	return ""
}

// record adds the verdict on some commits to the decisions. It writes the notes, too, unless the next cycle does.
func (j *judgement) record(ctx context.Context, ids []gitops.OID) ([]Decided, error) {
	all, err := j.Inside.About(ctx, ids...)
	if err != nil {
		return nil, err
	}
	patches, err := j.patches(ctx, ids)
	if err != nil {
		return nil, err
	}
	numbers, err := ledger.ReadNumbers(j.e.Dir())
	if err != nil {
		return nil, err
	}
	var decided []Decided
	for i := range all {
		r := &all[i]
		r.Unwritten = j.waits(r.Inner)
		r.Verdict = review.Verdict{Word: j.Word, By: j.Settings.User.String(), At: ledger.Timestamp(j.Now), Inner: r.Inner, Commit: j.outerOf(r.Inner), Reason: j.Reason}
		decided = append(decided, Decided{Inner: r.Inner, Commit: cmp.Or(r.Commit, r.Inner), Subject: r.Subject, Unlisted: (j.All || j.UpTo != "") && numbers.Of[r.Inner] == 0})
		if err := j.replace(ctx, r, j.Decisions.ReviewOf(r.Inner)); err != nil {
			return nil, err
		}
	}
	if !j.e.Repo.Dry {
		if err := j.publish(ctx, all, patches); err != nil {
			return nil, err
		}
	}
	parents := map[gitops.OID]gitops.OID{}
	for _, l := range j.all {
		parents[l.Commit] = decision.FirstParent(l)
	}
	for _, r := range all {
		j.Decisions = j.Decisions.Review(r, parents[r.Inner])
	}
	return decided, nil
}

// replace lets a verdict take the place of an earlier one, or of none. An approval takes the ref of the rejected commit back.
func (j *judgement) replace(ctx context.Context, r, before *ledger.Reviewed) error {
	if before == nil {
		return nil
	}
	if r.Paths = before.Paths; before.Number == 0 {
		return nil
	}
	ref := rejectedRef(j.e, before.Number)
	old, err := j.e.Repo.Ref(ctx, ref)
	if r.Number = before.Number; j.Word == review.Approve && old != "" {
		j.lifted, r.Number = append(j.lifted, gitops.RefUpdate{Ref: ref, Old: old}), 0
	}
	return err
}

// waits reports whether the next cycle writes the verdict on an inner commit, in the transaction that lands the commit or makes it
// pending again.
func (j *judgement) waits(inner gitops.OID) bool {
	return j.Word == review.Approve && slices.ContainsFunc(j.Ledger.Tail, func(t ledger.Pair) bool { return t.Inner == inner })
}

// patches returns the patch-ids of the outer commits of inner ones, without those of verdicts that the next cycle writes.
func (j *judgement) patches(ctx context.Context, inner []gitops.OID) (map[gitops.OID]string, error) {
	var outer []gitops.OID
	for _, id := range inner {
		if o := j.outerOf(id); o != "" && !j.waits(id) {
			outer = append(outer, o)
		}
	}
	if j.e.Repo.Dry {
		return nil, nil
	}
	return j.e.Repo.PatchIDs(ctx, outer)
}

// publish writes verdicts into the notes of their outer commits, and makes refs for rejected commits. It starts the same
// number of processes for any number of commits.
func (j *judgement) publish(ctx context.Context, all []ledger.Reviewed, patches map[gitops.OID]string) error {
	direct := func(r ledger.Reviewed) bool { return r.Commit != "" && !r.Unwritten }
	if !slices.ContainsFunc(all, direct) {
		return nil
	}
	_, look, err := j.Bridge(ctx)
	if err != nil {
		return err
	}
	free, err := j.freeNumber(ctx)
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
		c, err := look.Commit(ctx, r.Commit)
		if err != nil {
			return err
		}
		r.Tree, r.Patch = c.Tree, patches[r.Commit]
		note, err := j.noteWith(ctx, look, r.Verdict)
		if err != nil {
			return err
		}
		notes = append(notes, note)
		if r.Word != review.Approve && r.Number == 0 {
			r.Number = free
			refs = append(refs, gitops.RefUpdate{Ref: rejectedRef(j.e, free), New: r.Commit})
			free++
		}
	}
	if err := j.note(ctx, notes, refs...); err != nil {
		return fmt.Errorf("write the verdict: %w", err)
	}
	return nil
}

// noteWith returns the note of an outer commit with one more verdict.
func (j *judgement) noteWith(ctx context.Context, look *quarantine.Inspector, v review.Verdict) (quarantine.Note, error) {
	line, err := v.Line()
	if err != nil {
		return quarantine.Note{}, err
	}
	text, err := j.noteOf(ctx, look, v.Commit)
	return quarantine.Note{Commit: v.Commit, Text: review.Add(text, line)}, err
}

// noteOf returns the note with the verdicts on an outer commit, or empty.
func (j *judgement) noteOf(ctx context.Context, look *quarantine.Inspector, outer gitops.OID) (string, error) {
	tip, err := j.e.Repo.Ref(ctx, review.NotesRef)
	if err != nil || tip == "" {
		return "", err
	}
	text, err := look.NoteOf(ctx, tip, outer)
	return string(text), err
}

// freeNumber returns a number that no ref of a rejected commit has, including those that a kill left without a verdict.
func (j *judgement) freeNumber(ctx context.Context) (n int, err error) {
	refs, err := j.e.Repo.Refs(ctx, j.e.Record.Ref("rejected"))
	for name := range refs {
		if taken, err := strconv.Atoi(path.Base(name)); err == nil {
			n = max(n, taken)
		}
	}
	for _, r := range j.Decisions.Reviewed {
		n = max(n, r.Number)
	}
	return n + 1, err
}

// rejectedRef returns the ref of a commit that was rejected, or that the agent must fix.
func rejectedRef(e *promote.Engine, n int) string { return e.Record.Ref(fmt.Sprintf("rejected/%d", n)) }

// dependents returns the commits that do not apply without the given ones, and that are not among them.
func (j *judgement) dependents(ctx context.Context, without []gitops.OID) ([]gitops.OID, error) {
	held := map[gitops.OID]bool{}
	for _, id := range without {
		held[id] = true
	}
	blocked, err := j.blocked(ctx, held)
	var more []gitops.OID
	for _, l := range j.all {
		if _, needs := blocked[l.Commit]; needs && !held[l.Commit] && !j.Plan.Drops(l.Commit) {
			more = append(more, l.Commit)
		}
	}
	return more, err
}

// blocked maps the commits that do not apply without some others, and without the rejected ones, to the paths that
// conflict.
func (j *judgement) blocked(ctx context.Context, held map[gitops.OID]bool) (map[gitops.OID][]string, error) {
	trees, err := j.Trees(ctx)
	if err != nil {
		return nil, err
	}
	if len(j.Ledger.LeftOut()) == 0 {
		return j.Plan.Needs(ctx, held, trees)
	}
	return j.blockedOnBranch(ctx, held, trees)
}

// blockedOnBranch does the same if the branch already lacks commits that others have landed without. It applies the
// change of each commit to the tree of the branch.
func (j *judgement) blockedOnBranch(ctx context.Context, held map[gitops.OID]bool, trees *build.Trees) (map[gitops.OID][]string, error) {
	blocked, out := map[gitops.OID][]string{}, func(id gitops.OID) bool { return held[id] || j.Plan.Drops(id) }
	brings := j.Plan.Brings(j.all, out)
	for _, a := range j.Plan.Facts.Aside { // these also bring commits that were dropped before others landed
		brings[a.Commit] = append(brings[a.Commit], a.Brings...)
	}
	ours, err := j.e.Repo.Tree(ctx, j.Tip)
	for _, l := range j.all {
		if out(l.Commit) || len(l.Parents) == 0 || err != nil {
			continue
		}
		if slices.ContainsFunc(brings[l.Commit], out) {
			blocked[l.Commit] = []string{}
			continue
		}
		var base, theirs, tree gitops.OID
		var conflicts []string
		if base, err = trees.Tree(ctx, l.Parents[0]); err == nil {
			theirs, err = trees.Tree(ctx, l.Commit)
		}
		if err != nil || base == theirs {
			continue
		}
		tree, conflicts, err = trees.Merge(ctx, base, ours, theirs)
		if conflicts != nil || tree == ours && len(l.Parents) == 1 {
			blocked[l.Commit] = append([]string{}, conflicts...)
		} else {
			ours = tree
		}
	}
	return blocked, err
}

// AllLanded reports whether all of some commits have landed.
func AllLanded(ctx context.Context, e *promote.Engine, decided []Decided) (bool, error) {
	r := e.Record
	refs, err := e.Repo.Refs(ctx, r.Ref("promoted"), r.Ref("pending"))
	if err != nil {
		return false, err
	}
	l, err := ledger.Read(e.Dir(), ledger.Pair{Inner: r.Root, Outer: r.Base}, refs[r.Ref("promoted")], refs[r.Ref("pending")])
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(decided, func(d Decided) bool { return !l.Has(d.Inner) }), nil
}
