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
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// Decided is a commit with a new verdict.
type Decided struct {
	Inner   gitops.OID
	Commit  gitops.OID // the outer commit, or the inner one if it has not been built
	Subject string     // escaped
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
	defer j.Close()
	ids, err := j.chosen(ctx)
	if err != nil {
		return nil, err
	}
	var decided []Decided
	for i := 0; i < len(ids); i++ {
		d, err := j.record(ctx, ids[i])
		if err != nil {
			return nil, err
		}
		decided = append(decided, d)
		if i == len(ids)-1 && j.Dependents {
			more, err := j.dependents(ctx, ids)
			if err != nil {
				return nil, err
			}
			ids = append(ids, more...)
		}
	}
	if e.Repo.Dry {
		return decided, nil
	}
	if err := j.Decisions.Write(e.Dir()); err != nil || len(j.lifted) == 0 {
		return decided, err
	}
	return decided, e.Repo.UpdateRefs(ctx, "airlock: approve", j.lifted...)
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

// record adds the verdict on one commit to the decisions and to the notes.
func (j *judgement) record(ctx context.Context, inner gitops.OID) (Decided, error) {
	e, who := j.e, j.Settings.User.String()
	r, _, err := j.Inside.About(ctx, inner, true)
	if err != nil {
		return Decided{}, err
	}
	r.Verdict = review.Verdict{Word: j.Word, By: who, At: ledger.Timestamp(j.Now), Inner: inner, Commit: j.outerOf(inner), Reason: j.Reason}
	decided := Decided{Inner: inner, Commit: cmp.Or(r.Commit, inner), Subject: r.Subject}
	before := j.Decisions.ReviewOf(inner)
	if before != nil {
		r.Paths = before.Paths
	}
	if before != nil && before.Number > 0 {
		ref := rejectedRef(e, before.Number)
		old, err := e.Repo.Ref(ctx, ref)
		if err != nil {
			return decided, err
		}
		if r.Number = before.Number; j.Word == review.Approve && old != "" {
			j.lifted, r.Number = append(j.lifted, gitops.RefUpdate{Ref: ref, Old: old}), 0
		}
	}
	if r.Commit != "" && !e.Repo.Dry {
		if err := j.publish(ctx, &r); err != nil {
			return decided, err
		}
	}
	parent := gitops.OID("")
	if i := slices.IndexFunc(j.all, func(l quarantine.Link) bool { return l.Commit == inner }); i >= 0 {
		parent = verdict.FirstParent(j.all[i])
	}
	j.Decisions = j.Decisions.Review(r, parent)
	return decided, nil
}

// publish writes a verdict into the note of its outer commit, and makes a ref for a rejected commit.
func (j *judgement) publish(ctx context.Context, r *ledger.Reviewed) (err error) {
	repo := j.e.Repo
	if r.Tree, err = repo.Tree(ctx, r.Commit); err != nil {
		return err
	}
	if r.Patch, err = repo.PatchID(ctx, r.Commit); err != nil {
		return err
	}
	line, err := r.Line()
	if err != nil {
		return err
	}
	note, err := repo.Note(ctx, review.NotesRef, r.Commit)
	if err != nil {
		return err
	}
	if err := repo.SetNote(ctx, review.NotesRef, r.By, r.Commit, review.Add(note, line)); err != nil {
		return fmt.Errorf("write the verdict: %w", err)
	}
	if r.Word == review.Approve || r.Number > 0 {
		return nil
	}
	if r.Number, err = j.freeNumber(ctx); err != nil {
		return err
	}
	return repo.UpdateRefs(ctx, "airlock: "+string(r.Word), gitops.RefUpdate{Ref: rejectedRef(j.e, r.Number), New: r.Commit, Old: ""})
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
	blocked := map[gitops.OID][]string{}
	ours, err := j.e.Repo.Tree(ctx, j.Tip)
	for _, l := range j.all {
		if held[l.Commit] || j.Plan.Drops(l.Commit) || len(l.Parents) == 0 || err != nil {
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
