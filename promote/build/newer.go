package build

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// lineRead bounds the commits of the agent's first-parent history that are read. mostCarried bounds the merges with newer commits that one cycle
// makes, which takes some seconds.
const lineRead, mostCarried = 10_000, 1000

// run is a part of the agent's first-parent history: the commits after from, up to to.
type run struct{ from, to gitops.OID }

// lineCommit is a commit of the agent's first-parent history. Its changes are nil until they are read.
type lineCommit struct {
	quarantine.Link
	changed *changes
}

// carried is the change of a commit that was set aside, after the changes of newer commits.
type carried struct {
	runs          []run
	before, after gitops.OID
	conflicts     []string
}

// amongNewer returns the trees between which a commit that was set aside changes something, although newer commits of the agent are there
// already. before and after are the trees without and with the commit's change, at its own place. If newer commits change lines that the commit
// changes, amongNewer merges their changes into both. So the change that is left has no line that a newer commit has made again after this
// commit had taken it back. If a newer commit conflicts with the commit's change, or if there are too many merges to make, applies is false and c
// has the reason. Such a commit waits: if it landed, it could take the changes of newer commits away.
func (b *builder) amongNewer(ctx context.Context, a history.Aside, c *Conflict, before, after gitops.OID) (base, theirs gitops.OID, applies bool, err error) {
	t := b.request.Trees
	own, err := t.changes(ctx, before, after)
	if err != nil {
		return "", "", false, err
	}
	runs, err := b.newerThan(ctx, a.Commit, own)
	if err != nil || len(runs) == 0 {
		return before, after, true, err
	}
	older := b.onto != b.request.Onto
	done, known := b.carried[a.Commit]
	if !known || !slices.Equal(done.runs, runs) {
		done = carried{runs: runs, before: before, after: after}
		if c.TooMany, err = t.carry(ctx, &done); err != nil || c.TooMany && !older {
			return "", "", false, err
		}
		b.carried[a.Commit] = done
	}
	if older && (done.conflicts != nil || c.TooMany) {
		c.TooMany = false
		return before, after, true, nil // the user's merge shows the conflict
	}
	c.Paths = append(c.Paths, done.conflicts...)
	return done.before, done.after, done.conflicts == nil, nil
}

// newerThan returns the runs of the agent's first-parent history after one of its commits whose changes must be merged into that commit's, oldest
// first. own are the changes of the commit. Only newer commits are in runs whose images are below the commit that is built next. Each one that
// changes a line of own is a run of its own: several together could make a line again and take it back. The others in the same paths are joined
// and only matter before such a commit. newerThan returns none if the history does not have the commit, and only those before the next synced
// commit: a synced commit also takes out what was left out before it, which only the agent's tree had.
func (b *builder) newerThan(ctx context.Context, commit gitops.OID, own changes) ([]run, error) {
	if b.line == nil {
		if err := b.readLine(ctx); err != nil {
			return nil, err
		}
	}
	var runs []run
	last, paths, joins, all := 0, own.paths(), false, own == nil
	for at := slices.IndexFunc(b.line, func(l lineCommit) bool { return l.Commit == commit }) - 1; at >= 0; at-- {
		l := &b.line[at]
		p, built := b.pairOf(l.Commit)
		if p.Synced || p.Copy != "" {
			break
		}
		changed, err := b.changesOf(ctx, l)
		if err != nil {
			return nil, err
		}
		if !changed.meet(paths) {
			continue
		}
		there := b.placed[l.Commit] != "" || built && !b.plan.LeavesOut(l.Commit) || b.landed[l.Commit]
		if !there && b.missing[l.Commit] && b.onto == b.request.Onto {
			there, err = b.isRewritten(ctx, *l, own)
		}
		if err != nil {
			return nil, err
		}
		if !there {
			joins = false
			continue
		}
		paths = changed.addTo(paths)
		same, files, err := b.request.Trees.sameLines(ctx, own, changed)
		if err != nil {
			return nil, err
		}
		all = all || files // the lines may have moved to another path
		if same = same || all; joins && !same {
			runs[len(runs)-1].to = l.Commit
		} else {
			runs = append(runs, run{b.parentOf(l.Link), l.Commit})
		}
		if joins = !same; same {
			last = len(runs)
		}
	}
	return runs[:last], nil
}

// changesOf returns the changes of a commit of line since its first parent, which it lists once.
func (b *builder) changesOf(ctx context.Context, l *lineCommit) (changes, error) {
	if l.changed == nil {
		from, err := b.request.Inside.Commit(ctx, b.parentOf(l.Link))
		if err != nil {
			return nil, err
		}
		to, err := b.request.Inside.Commit(ctx, l.Commit)
		if err != nil {
			return nil, err
		}
		changed, err := b.request.Trees.changes(ctx, from.Tree, to.Tree)
		if err != nil {
			return nil, err
		}
		l.changed = &changed
	}
	return *l.changed, nil
}

// pairOf returns the pair of an inner commit that is built, or has landed. built reports the former.
func (b *builder) pairOf(commit gitops.OID) (p ledger.Pair, built bool) {
	if p, built = b.done[commit]; !built {
		p, _ = b.plan.Ledger.Image(commit)
	}
	return p, built
}

// isRewritten reports whether the branch has the change of a landed commit in the paths of own, although it has neither that commit nor one that
// stands for it. Then the user has amended or squashed the commit, and has not taken its change back. If the branch has other lines there, the user
// may have changed the commit's, which counts as the same.
func (b *builder) isRewritten(ctx context.Context, l lineCommit, own changes) (bool, error) {
	t := b.request.Trees
	m, err := t.Change(ctx, b.parentOf(l.Link), l.Commit)
	if err != nil {
		return false, err
	}
	if m.Ours, err = b.treeOf(ctx, b.onto); err != nil {
		return false, err
	}
	m.NoDirectoryRenames = true
	tree, known := t.rewritten[m]
	if !known {
		if t.made >= mostCarried {
			return true, nil
		}
		t.made++
		if tree, _, err = b.mergeOn(ctx, m); err != nil {
			return false, err
		}
		t.rewritten[m] = tree
	}
	if tree == "" {
		return true, nil
	}
	left, err := t.changes(ctx, m.Ours, tree)
	return !left.meet(own.paths()), err
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
	b.line, b.landed, b.missing = []lineCommit{}, map[gitops.OID]bool{}, map[gitops.OID]bool{}
	var pairs []ledger.Pair
	for id := b.plan.Tip; id != b.plan.Ledger.Base.Inner && !b.plan.Brought[id] && len(b.line) < lineRead && len(aside) > 0; {
		c, err := b.request.Inside.Commit(ctx, id)
		if err != nil {
			return err
		}
		b.line = append(b.line, lineCommit{Link: quarantine.Link{Commit: id, Parents: c.Parents}})
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

// findLanded finds out which landed commits the commit that is built on has, or has in another form after a rebase of the user. The others are
// missing: it may have their changes all the same.
func (b *builder) findLanded(ctx context.Context, pairs []ledger.Pair) error {
	if len(pairs) == 0 {
		return nil
	}
	there, err := b.request.reached(ctx, ledger.Outers(pairs), b.request.Onto)
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
		b.missing[p.Inner] = !b.landed[p.Inner]
	}
	return nil
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
