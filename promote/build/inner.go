package build

import (
	"context"
	"path/filepath"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Trees reads and merges the complete trees of inner commits. It implements [history.Trees].
type Trees struct {
	bridge  *quarantine.Bridge
	across  *quarantine.Inspector
	plan    *history.Plan
	partial bool
	overlay *quarantine.Overlay // the files that the snapshot left out, once they are known
	trees   map[gitops.OID]gitops.OID
	merges  map[quarantine.Merge]merge
	file    string     // see [MergesFile]
	kept    keptMerges // what the file had; nil until it is needed

	takenBack int // by Needs
	followed  int // the number of commits that before has read, with repetitions
	newer
}

// newer keeps what comparisons with commits found that are newer than one that was set aside.
type newer struct {
	made      int                                      // the number of merges with their changes
	rewritten map[quarantine.Merge]gitops.OID          // the merges of isRewritten; no tree means a conflict
	listed    cache[[2]gitops.OID, changes]            // by trees
	lines     cache[[2]gitops.OID, gitops.Set[string]] // by files; see linesOf
}

// NewTrees reads the trees of a plan's commits. If partial is set, the snapshot left files out (airlock.exclude). The
// agent's trees lack these files. They are put back into every tree before it is used, so that the agent can neither
// remove nor replace them. dir is the host state.
func NewTrees(p *history.Plan, partial bool, dir string, bridge *quarantine.Bridge, across *quarantine.Inspector) *Trees {
	return &Trees{bridge: bridge, across: across, plan: p, partial: partial, file: filepath.Join(dir, MergesFile),
		trees: map[gitops.OID]gitops.OID{}, merges: map[quarantine.Merge]merge{},
		newer: newer{rewritten: map[quarantine.Merge]gitops.OID{}}}
}

// restore puts the files that the snapshot left out back into a tree.
func (t *Trees) restore(ctx context.Context, tree gitops.OID) (gitops.OID, error) {
	if !t.partial {
		return tree, nil
	}
	if t.overlay == nil {
		base := t.plan.Ledger.Base
		whole, err := t.across.Commit(ctx, base.Outer)
		if err != nil {
			return "", err
		}
		part, err := t.across.Commit(ctx, base.Inner)
		if err != nil {
			return "", err
		}
		if t.overlay, err = t.bridge.Overlay(ctx, t.across, whole.Tree, part.Tree); err != nil {
			return "", err
		}
	}
	return t.overlay.Apply(ctx, tree)
}

// Tree returns the tree of an inner commit, including the files that the snapshot left out.
func (t *Trees) Tree(ctx context.Context, commit gitops.OID) (gitops.OID, error) {
	if tree, ok := t.trees[commit]; ok {
		return tree, nil
	}
	c, err := t.across.Commit(ctx, commit)
	if err != nil {
		return "", err
	}
	tree := c.Tree
	if !t.plan.Brought[commit] && commit != t.plan.Last.Outer { // commits of the user's branch have all files
		tree, err = t.restore(ctx, tree)
	}
	t.trees[commit] = tree
	return tree, err
}

// Parent returns the first parent of an inner commit, or empty for a root commit.
func (t *Trees) Parent(ctx context.Context, commit gitops.OID) (gitops.OID, error) {
	c, err := t.across.Commit(ctx, commit)
	if err != nil || len(c.Parents) == 0 {
		return "", err
	}
	return c.Parents[0], nil
}

// Change returns the change of an inner commit since its parent, as a merge without Ours.
func (t *Trees) Change(ctx context.Context, parent, commit gitops.OID) (m quarantine.Merge, err error) {
	if m.Base, err = t.Tree(ctx, parent); err == nil {
		m.Theirs, err = t.Tree(ctx, commit)
	}
	return m, err
}

// Merge makes the three-way merge of two trees of the agent, once. It also knows the merges of earlier processes. A tree of such a merge
// is in a store only if a commit was built with it.
func (t *Trees) Merge(ctx context.Context, base, ours, theirs gitops.OID) (gitops.OID, []string, error) {
	m := quarantine.Merge{Base: base, Ours: ours, Theirs: theirs, NoDirectoryRenames: true}
	if done, ok := t.merges[m]; ok {
		return done.tree, done.conflicts, nil
	}
	done, known := t.earlier(m)
	if known && (done.tree == "" || t.across.Has(ctx, done.tree)) {
		t.merges[m] = done
		return done.tree, done.conflicts, nil
	}
	tree, conflicts, err := t.bridge.Merge(ctx, m)
	if gitops.Crashed(err) { // the commit does not apply, and others may
		tree, conflicts, err, known = "", []string{}, nil, true
	}
	if err == nil {
		t.merges[m] = merge{tree, conflicts}
	}
	if err == nil && !known {
		appendMerge(t.file, m, t.merges[m])
	}
	return tree, conflicts, err
}

// earlier returns the result of a merge of an earlier process, if it is known.
func (t *Trees) earlier(m quarantine.Merge) (merge, bool) {
	if t.kept == nil {
		t.kept = readMerges(t.file)
	}
	return t.kept.of(m)
}

// Made returns the result of a merge of the agent's trees, if it is known. The tree may be in no store any more.
func (t *Trees) Made(base, ours, theirs gitops.OID) (gitops.OID, []string, bool) {
	m := quarantine.Merge{Base: base, Ours: ours, Theirs: theirs, NoDirectoryRenames: true}
	done, known := t.merges[m]
	if !known {
		done, known = t.earlier(m)
	}
	return done.tree, done.conflicts, known
}

// Has reports whether a tree is in a store.
func (t *Trees) Has(ctx context.Context, tree gitops.OID) bool { return t.across.Has(ctx, tree) }

// standIn returns the image of a commit that is left out: the image of its first parent, or the branch's tip. It does not count as one with the
// same tree, because the tip can have commits of the user.
func (b *builder) standIn(l quarantine.Link) ledger.Pair {
	p := ledger.Pair{Outer: b.on}
	if len(l.Parents) > 0 {
		p, _ = b.image(l.Parents[0])
	}
	return ledger.Pair{Inner: l.Commit, Outer: p.Outer, Merged: true}
}
