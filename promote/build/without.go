package build

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// mostTakenBack bounds the changes that all calls of [Trees.Needs] together take back, each of which is a merge of some milliseconds. mostFollowed
// bounds the commits that they read, which takes about half a second. The agent chooses the number of commits that conflict.
const mostTakenBack, mostFollowed = 200, 2_000_000

// Needs reports whether the change of an inner commit since its first parent conflicts, or is empty, without the changes of the commits before
// it for which out reports true. It uses the agent's trees only, so that a conflict with a commit of the user is not taken for such a need. Beyond
// mostTakenBack and mostFollowed it reports a need without trying.
func (t *Trees) Needs(ctx context.Context, commit gitops.OID, out func(gitops.OID) bool) (bool, error) {
	if t.followed > mostFollowed {
		return true, nil
	}
	left, err := t.before(ctx, commit, out)
	if err != nil || len(left) == 0 {
		return false, err
	}
	if t.takenBack += len(left); t.takenBack > mostTakenBack {
		return true, nil
	}
	c, err := t.across.Commit(ctx, commit)
	if err != nil || len(c.Parents) == 0 {
		return false, err
	}
	m, err := t.Change(ctx, c.Parents[0], commit)
	if err != nil || m.Base == m.Theirs {
		return false, err
	}
	ours, conflicts, err := t.withoutChanges(ctx, m.Base, left)
	tree := ours
	if err == nil && conflicts == nil {
		tree, conflicts, err = t.Merge(ctx, m.Base, ours, m.Theirs)
	}
	return conflicts != nil || tree == ours && len(c.Parents) == 1, err
}

// before returns the commits that an inner commit follows and for which wanted reports true, oldest first. It leaves out root commits that
// merges bring: they have no change of their own, since those of the merges have their files.
func (t *Trees) before(ctx context.Context, commit gitops.OID, wanted func(gitops.OID) bool) ([]gitops.OID, error) {
	parents, first, listed := map[gitops.OID][]gitops.OID{}, map[gitops.OID]gitops.OID{}, gitops.SetOf(t.plan.Ledger.Base.Inner)
	var found []gitops.OID
	for todo := []gitops.OID{commit}; len(todo) > 0; {
		id := todo[len(todo)-1]
		_, read := parents[id]
		switch {
		case listed[id] || t.plan.Brought[id] || t.plan.Ledger.HasOuter(id):
			todo = todo[:len(todo)-1]
		case read: // its parents are listed
			listed[id], found, todo = true, append(found, id), todo[:len(todo)-1]
		default:
			c, err := t.across.Commit(ctx, id)
			if err != nil {
				return nil, err
			}
			if len(c.Parents) > 0 {
				first[id] = c.Parents[0]
			}
			parents[id], todo = c.Parents, append(todo, c.Parents...)
		}
	}
	t.followed += len(parents)
	oldest := commit // of the first-parent history
	for first[oldest] != "" {
		oldest = first[oldest]
	}
	return slices.DeleteFunc(found, func(id gitops.OID) bool {
		return id == commit || len(parents[id]) == 0 && id != oldest || !wanted(id)
	}), nil
}

// withoutChanges returns an inner tree without the changes of some commits, which are oldest first. It takes back the change of the newest commit
// first.
func (t *Trees) withoutChanges(ctx context.Context, tree gitops.OID, commits []gitops.OID) (without gitops.OID, conflicts []string, err error) {
	for _, id := range slices.Backward(commits) {
		c, err := t.across.Commit(ctx, id)
		if err != nil {
			return "", nil, err
		}
		parent := t.plan.Ledger.Base.Inner
		if len(c.Parents) > 0 {
			parent = c.Parents[0]
		}
		m, err := t.Change(ctx, parent, id)
		if err != nil {
			return "", nil, err
		}
		if tree == m.Theirs {
			tree = m.Base // no merge has to be made, or kept
			continue
		}
		if tree, conflicts, err = t.Merge(ctx, m.Theirs, tree, m.Base); err != nil || conflicts != nil {
			return "", conflicts, err
		}
	}
	return tree, nil, nil
}
