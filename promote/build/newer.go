package build

import (
	"context"
	"errors"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// lineRead bounds the commits of the agent's first-parent history that are read. mostReordered bounds the newer commits among which all
// calls of [builder.amongNewer] follow changes. Each needs up to two merges.
const lineRead, mostReordered = 10_000, 1000

// follow is the change of a commit that was set aside, after the changes of newer commits.
type follow struct {
	newer         []quarantine.Link
	before, after gitops.OID
	conflicts     []string
}

// amongNewer returns the trees between which a commit that was set aside changes something, although newer commits of the agent are there
// already. before and after are the trees without and with the commit's change, at its own place. amongNewer merges the changes of the newer
// commits into both. So the change that is left has no line that a newer commit has made again after this commit had taken it back. If a
// newer commit conflicts with the commit's change, amongNewer returns the paths. Each commit is tried several times, and its last answer is kept.
func (b *builder) amongNewer(ctx context.Context, a history.Aside, before, after gitops.OID) (base, theirs gitops.OID, conflicts []string, err error) {
	newer, err := b.newerThan(ctx, a.Commit)
	if err != nil || len(newer) == 0 {
		return before, after, nil, err
	}
	sameCommit := func(l, other quarantine.Link) bool { return l.Commit == other.Commit }
	if f := b.followed[a.Commit]; slices.EqualFunc(f.newer, newer, sameCommit) {
		return f.before, f.after, f.conflicts, nil
	}
	if b.reordered+len(newer) > mostReordered {
		return before, after, nil, nil
	}
	if apart, err := b.apartFrom(ctx, a, newer[0].Commit); err != nil || apart {
		return before, after, nil, err
	}
	b.reordered += len(newer)
	f := follow{newer: newer, before: before, after: after}
	for _, l := range slices.Backward(newer) {
		for _, tree := range []*gitops.OID{&f.before, &f.after} {
			if *tree, f.conflicts, err = b.request.Trees.apply(ctx, b.parentOf(l), *tree, l.Commit); err != nil {
				return "", "", nil, err
			}
			if f.conflicts != nil {
				b.followed[a.Commit] = f
				return f.before, f.after, f.conflicts, nil
			}
		}
	}
	b.followed[a.Commit] = f
	return f.before, f.after, nil, nil
}

// apply returns an inner tree with the change from one inner commit to another.
func (t *Trees) apply(ctx context.Context, from, tree, to gitops.OID) (gitops.OID, []string, error) {
	base, err := t.Tree(ctx, from)
	if err != nil {
		return "", nil, err
	}
	theirs, err := t.Tree(ctx, to)
	switch {
	case err != nil || tree == base || tree == theirs:
		return theirs, nil, err
	case base == theirs:
		return tree, nil, nil
	}
	return t.Merge(ctx, base, tree, theirs)
}

// apartFrom reports whether the paths that a commit changes are the same in the commit and in a newer one.
func (b *builder) apartFrom(ctx context.Context, a history.Aside, newest gitops.OID) (bool, error) {
	paths, all, err := b.request.changed(ctx, b.request.Inside, b.parentOf(a.Link), a.Commit)
	if err != nil || !all {
		return false, err
	}
	later, all, err := b.request.changed(ctx, b.request.Inside, a.Commit, newest)
	return all && !meet(paths, later), err
}

// newerThan returns the commits of the agent's first-parent history after one of its commits, as far as their images are below the commit that is
// built next, newest first. It returns none if the history does not have that commit, and only those before the next synced commit.
func (b *builder) newerThan(ctx context.Context, commit gitops.OID) ([]quarantine.Link, error) {
	if b.line == nil {
		if err := b.readLine(ctx); err != nil {
			return nil, err
		}
	}
	var newer []quarantine.Link
	for _, l := range b.line {
		if l.Commit == commit {
			return newer, nil
		}
		p, built := b.done[l.Commit]
		if !built {
			p, _ = b.plan.Ledger.Image(l.Commit)
		}
		if p.Synced || p.Copy != "" {
			newer = nil // it also takes out what was left out before it, which only the agent's tree had
			continue
		}
		if b.placed[l.Commit] != "" || built && !b.plan.LeavesOut(l.Commit) || b.landed[l.Commit] {
			newer = append(newer, l)
		}
	}
	return nil, nil
}

// lacksOlder reports whether a commit before another one is left out.
func (b *builder) lacksOlder(ctx context.Context, commit gitops.OID) (bool, error) {
	left := gitops.SetOf(b.plan.Ledger.LeftOut()...)
	older, err := b.request.Trees.before(ctx, commit, func(id gitops.OID) bool {
		return b.placed[id] == "" && (left[id] || b.plan.Drops(id) || b.waits(id))
	})
	return len(older) > 0, err
}

// readLine reads the agent's first-parent history from its newest commit to the oldest one that was set aside, and finds out which of these commits
// the branch has at the commit that is built on.
func (b *builder) readLine(ctx context.Context) error {
	aside, last := gitops.Set[gitops.OID]{}, 0
	for _, a := range b.plan.Aside {
		aside[a.Commit] = true
	}
	b.line, b.landed = []quarantine.Link{}, map[gitops.OID]bool{}
	var pairs []ledger.Pair
	for id := b.plan.Tip; id != b.plan.Ledger.Base.Inner && !b.plan.Brought[id] && len(b.line) < lineRead && len(aside) > 0; {
		c, err := b.request.Inside.Commit(ctx, id)
		if err != nil {
			return err
		}
		b.line = append(b.line, quarantine.Link{Commit: id, Parents: c.Parents})
		if p, there := b.plan.Ledger.Image(id); there {
			pairs = append(pairs, p)
		}
		if aside[id] {
			delete(aside, id)
			last = len(b.line)
		}
		if len(c.Parents) == 0 {
			break
		}
		id = c.Parents[0]
	}
	b.line = b.line[:last]
	return b.findLanded(ctx, pairs)
}

// findLanded finds out which landed commits the commit that is built on has, or has in another form after a rebase of the user.
func (b *builder) findLanded(ctx context.Context, pairs []ledger.Pair) error {
	if len(pairs) == 0 {
		return nil
	}
	there, err := b.request.reached(ctx, ledger.Outers(pairs), b.onto)
	if err != nil {
		return err
	}
	var rewritten map[sameChange]gitops.OID
	for _, p := range pairs {
		if b.landed[p.Inner] = there[p.Outer]; b.landed[p.Inner] {
			continue
		}
		if rewritten == nil {
			if rewritten, err = b.rewritten(ctx); err != nil {
				return err
			}
		}
		c, err := b.request.Inside.Commit(ctx, p.Inner)
		if err != nil {
			return err
		}
		b.landed[p.Inner] = rewritten[changeOf(c)] != ""
	}
	return nil
}

// changed returns the paths in which two commits differ. all is false if there are too many.
func (r Request) changed(ctx context.Context, in *quarantine.Inspector, from, to gitops.OID) (paths gitops.Set[string], all bool, err error) {
	before, err := in.Commit(ctx, from)
	if err != nil {
		return nil, false, err
	}
	after, err := in.Commit(ctx, to)
	if err != nil {
		return nil, false, err
	}
	changes, err := in.Diff(ctx, before.Tree, after.Tree, inner.DefaultLimits)
	if errors.As(err, new(*inner.Invalid)) {
		return nil, false, nil
	}
	paths = gitops.Set[string]{}
	for _, change := range changes {
		paths[change.Path] = true
	}
	return paths, true, err
}

// meet reports whether two sets have a path in common.
func meet(one, other gitops.Set[string]) bool {
	for path := range one {
		if other[path] {
			return true
		}
	}
	return false
}

// reached returns those of some commits that another one reaches.
func (r Request) reached(ctx context.Context, commits []gitops.OID, from gitops.OID) (gitops.Set[gitops.OID], error) {
	there, err := r.Repo.Present(ctx, commits)
	if err != nil {
		return nil, err
	}
	others, err := r.Repo.Unreached(ctx, there, []gitops.OID{from})
	found := gitops.SetOf(there...)
	for _, id := range others {
		delete(found, id)
	}
	return found, err
}
