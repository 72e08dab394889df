package build

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// treatment is the way in which the trees of a chain are made.
type treatment int

const (
	merged      treatment = iota // merged with the tree of the commit they land on
	wholeOnly                    // merged on an older commit of the branch, which may have no part of a commit's change already
	anyPart                      // merged, also on a commit that has a part of a change; see [Conflict.Lacks]
	inPortions                   // merged, but if merging takes long, only a first portion that can land
	theirsFirst                  // merged, and with the agent's lines where that conflicts, so that the user can merge the commit
)

// portionTime is the time that merging may take before the commits built so far land. Otherwise, each commit that the user makes meanwhile would
// make the merging start again from the first commit.
const portionTime = 500 * time.Millisecond

// authorKept bounds the bytes of an inner author that are stored in the note.
const authorKept = 8 << 10

// builder builds one chain of commits.
type builder struct {
	// What to build. These fields do not change during the building.
	request Request
	plan    *history.Plan
	onto    gitops.OID // the branch's tip, or another commit to build on
	how     treatment
	now     time.Time
	// apart is the only commit of those set aside that is built with the agent's lines where it conflicts, or empty. What it merges is built so, too.
	apart gitops.OID
	// keepsEmpty reports that commits are built whose change the branch has already.
	keepsEmpty bool
	// replaced maps inner commits whose images are no longer on the branch to the commits that the branch has instead.
	replaced map[gitops.OID]gitops.OID

	// The commits so far.
	on      gitops.OID                 // the parent of the first new commit of the chain: onto, or the newest commit that is built before the chain
	below   int                        // number of fresh commits that are built before the chain
	done    map[gitops.OID]ledger.Pair // pending or built, by inner commit
	placed  map[gitops.OID]gitops.OID  // the outer commits of those that were set aside
	begins  map[gitops.OID]gitops.OID  // where side branches begin that do not begin at the image of their first commit's parent, by that first commit; see moveSide
	taken   map[gitops.OID]gitops.OID  // the inner commits of outer ones whose names are in use
	former  map[gitops.OID]gitops.OID  // the outer commits that were pending before, by inner commit
	outside map[gitops.OID]bool        // parents that are not built here
	named   gitops.Set[gitops.OID]     // the commits that were set aside and that a pair names as left out
	dropped []history.Aside            // the commits that the user leaves out; a later decision can bring them back
	// overrules reports that the current commit is the one of apart, or comes with it.
	overrules bool
	copied    gitops.OID // the synced commit of which the current commit is a copy, or empty

	// The answer.
	fresh   []Fresh
	lacks   []string  // see [Conflict.Lacks]
	stopped *Conflict // why the building stopped, or nil; the commits built before stay
	crash   error     // why the last merge has conflicts without paths, or nil
	merging bool      // trees had to be merged, which takes time
	late    bool      // merging took too long: the commits built so far are complete, the rest is left out

	// What was read once.
	trees   map[gitops.OID]gitops.OID // by commit; trees of inner commits are complete, and without dropped changes
	synced  map[string]gitops.OID     // synced commits by author and date; see copyOf
	line    []lineCommit              // see readLine
	landed  map[gitops.OID]bool       // the landed commits of line that onto has
	missing map[gitops.OID]bool       // the other landed commits of line

	carried map[gitops.OID]carried // the last answers of amongNewer, by inner commit
}

// build builds links on top of the pending commits.
func (r Request) build(ctx context.Context, links []quarantine.Link, pending []ledger.Pair, onto gitops.OID, how treatment) (*builder, error) {
	b := newBuilder(r, pending, onto, how, time.Now())
	if err := b.findReplacements(ctx, links); err != nil {
		return b, err
	}
	if !slices.ContainsFunc(pending, func(t ledger.Pair) bool { return !r.isFirst(t) }) {
		if err := b.first(ctx); err != nil {
			return b, err
		}
	}
	whole := b.lastOnto(links)
	for i := 0; i < len(links); i++ {
		l := links[i]
		r.Progress(i+1, len(links))
		inner, err := r.Inside.Commit(ctx, l.Commit)
		if err != nil {
			return b, err
		}
		if err := b.commit(ctx, l, inner); err != nil {
			return b, err
		}
		if b.conflicts() && b.stopped.Commit == l.Commit {
			first, err := b.moveSide(ctx, links[:i+1])
			if err != nil {
				return b, err
			}
			if first >= 0 {
				b.dropped = slices.DeleteFunc(b.dropped, func(a history.Aside) bool { return slices.Contains(quarantine.Commits(links[first:]), a.Commit) })
				i = first - 1
				continue
			}
		}
		if b.how == inPortions && b.merging && i >= whole && time.Since(b.now) > portionTime && slices.Contains(b.plan.Chain, l.Commit) {
			b.late = true // everything that a commit reaches was built before it
			b.keep(l.Commit)
		}
		if b.stopped != nil || b.late {
			break
		}
	}
	return b, nil
}

// newBuilder returns a builder that has built nothing yet. pending are the commits that stay as they are.
func newBuilder(r Request, pending []ledger.Pair, onto gitops.OID, how treatment, now time.Time) *builder {
	b := &builder{request: r, plan: r.Plan, onto: onto, on: onto, how: how, named: gitops.SetOf(r.Plan.Ledger.LeftOut()...), placed: map[gitops.OID]gitops.OID{}, now: now, done: map[gitops.OID]ledger.Pair{},
		trees: map[gitops.OID]gitops.OID{}, taken: map[gitops.OID]gitops.OID{}, former: map[gitops.OID]gitops.OID{}, outside: map[gitops.OID]bool{}, carried: map[gitops.OID]carried{}, begins: map[gitops.OID]gitops.OID{}}
	for _, t := range r.Plan.Ledger.Tail { // no other inner commit may get one of these outer commits, which have notes and verdicts
		b.taken[t.Outer], b.former[t.Inner] = t.Inner, t.Outer
	}
	for _, t := range pending {
		b.done[t.Inner] = t
		if r.isFirst(t) {
			b.placed[t.Inner], b.on = t.Outer, t.Outer
		}
		b.named.Add(t.Without...)
	}
	return b
}

// lastOnto returns the number of links up to the last one that has the newest landed commit as a parent. The image of
// that parent is the branch's current tip, and changes once a portion has landed.
func (b *builder) lastOnto(links []quarantine.Link) int {
	for i, l := range slices.Backward(links) {
		if slices.Contains(l.Parents, b.plan.Last.Inner) {
			return i + 1
		}
	}
	return 0
}

// conflicts reports whether the building stopped for another reason than commits that were left out.
func (b *builder) conflicts() bool { return b.stopped != nil && b.stopped.Lacking == nil }

// commit builds one commit.
func (b *builder) commit(ctx context.Context, l quarantine.Link, inner gitops.Commit) error {
	parents, err := b.parents(l)
	if err != nil {
		return err
	}
	if inner.Tree, err = b.request.Trees.restore(ctx, inner.Tree); err != nil {
		return err
	}
	theirs := inner.Tree
	if tree, differs := b.plan.Tree(l.Commit); differs {
		theirs = tree
	}
	lacking := &ledger.Dropped{Commit: l.Commit, Subject: inner.Subject()}
	if paths, blocked := b.plan.Blocked(l.Commit); blocked && !b.plan.LeavesOut(l.Commit) {
		b.stopped = &Conflict{Paths: paths, Lacking: lacking}
		return nil
	}
	if b.bringsWaiting(l) {
		b.stopped = &Conflict{Commit: l.Commit, Paths: []string{}, Lacking: lacking}
		return nil
	}
	b.trees[l.Commit] = theirs
	if b.plan.LeavesOut(l.Commit) {
		b.done[l.Commit] = b.standIn(l)
		if b.plan.Drops(l.Commit) {
			b.dropped = append(b.dropped, history.Aside{Link: l})
		}
		return nil
	}
	if b.copied, err = b.copyOf(ctx, inner.Author); err == nil {
		theirs, err = b.regain(ctx, l, theirs)
	}
	if err != nil || b.stopped != nil {
		return err
	}
	tree, err := b.tree(ctx, l, theirs, parents)
	if err == nil {
		err = b.checkNeeds(ctx, l, inner, theirs, tree, parents)
	}
	if err == nil && b.stopped == nil {
		err = b.patch(ctx, l, theirs, parents, tree)
	}
	if err != nil || b.stopped != nil {
		return err
	}
	p := ledger.Pair{Inner: l.Commit, Copy: b.copied, Without: b.unnamed(slices.Concat(b.dropped, b.plan.Without(l.Commit)))}
	if l.Commit == b.plan.Chain[0] {
		p.Supersedes = b.plan.Supersedes
	}
	return b.add(ctx, p, inner, tree, parents)
}

// unnamed returns the commits that were set aside, are not built yet, and that no pair names as left out.
func (b *builder) unnamed(aside []history.Aside) (fresh []gitops.OID) {
	for _, a := range aside {
		fresh = append(fresh, b.unnamedOf(b.plan.GoneWith(a))...)
	}
	return fresh
}

// unnamedOf returns the commits of a list that are not built yet and that no pair names as left out.
func (b *builder) unnamedOf(commits []gitops.OID) (fresh []gitops.OID) {
	for _, id := range commits {
		if b.placed[id] == "" && !b.named[id] {
			b.named[id] = true
			fresh = append(fresh, id)
		}
	}
	return fresh
}

// add makes an outer commit of an inner one. The pair has everything but the outer commit.
func (b *builder) add(ctx context.Context, p ledger.Pair, inner gitops.Commit, tree gitops.OID, parents []gitops.OID) error {
	if err := quarantine.CheckDates(p.Inner, inner); err != nil { // there may have been too many commits to read each before
		return err
	}
	author, written := gitops.SplitIdent(inner.Author)
	user := b.request.User.String()
	outer := gitops.Commit{Tree: tree, Parents: parents, Author: user + " " + written, Encoding: inner.Encoding, Message: inner.Message}
	if outer.Committer = b.formerCommitter(ctx, outer, user, p.Inner); outer.Committer == "" {
		outer = b.date(outer, user, p.Inner)
	}
	id, err := b.make(ctx, outer)
	if err != nil {
		return err
	}
	p.Outer, p.Merged = id, tree != inner.Tree
	p.From, p.Joined = b.plan.From, b.plan.Joined(p.Inner)
	b.done[p.Inner], b.trees[id] = p, tree
	b.fresh = append(b.fresh, Fresh{p, strings.Clone(author[:min(len(author), authorKept)]), id == b.former[p.Inner]})
	return nil
}

// parents returns the images of a commit's parents, each once.
func (b *builder) parents(l quarantine.Link) ([]gitops.OID, error) {
	var outer []gitops.OID
	add := func(o gitops.OID, built bool) {
		if !slices.Contains(outer, o) {
			outer = append(outer, o)
		}
		if !built {
			b.outside[o] = true
		}
	}
	inside := l.Parents
	if l.Commit == b.plan.Chain[0] {
		add(b.on, b.trees[b.on] != "" && b.on != b.onto)
		inside = inside[min(1, len(inside)):]
	}
	for n, i := range inside {
		p, ok := b.image(i)
		if !ok {
			return nil, &inner.Invalid{Reason: fmt.Sprintf("commit %s names the parent %s, which is not a commit of this workspace", l.Commit, i)}
		}
		if begin := b.begins[l.Commit]; begin != "" && n == 0 {
			add(begin, true)
			continue
		}
		add(p.Outer, b.trees[p.Outer] != "" && p.Outer != b.onto)
	}
	return outer, nil
}

// image returns the pair of an inner commit. The image of the last landed commit is the branch's tip, with what is built before the chain.
func (b *builder) image(inner gitops.OID) (p ledger.Pair, ok bool) {
	for {
		if p, ok = b.done[inner]; ok {
			return p, true
		}
		if b.plan.Brought[inner] {
			return ledger.Pair{Inner: inner, Outer: cmp.Or(b.replaced[inner], inner)}, true
		}
		if p, ok = b.plan.Ledger.Image(inner); ok {
			if inner == b.plan.Last.Inner {
				p.Outer = b.on
			} else if id := b.replaced[inner]; id != "" {
				p.Outer = id
			}
			return p, true
		}
		parent := b.plan.ParentOf(inner)
		if parent == "" {
			return p, false
		}
		inner = parent // a commit that is left out has no image of its own
	}
}

// formerCommitter returns the committer of the outer commit that was pending for an inner one, if that commit has the user as its committer and
// differs from c in nothing else. With it the commit keeps its id, which colleagues may have fetched and may name in a verdict. In all other cases
// the result is empty.
func (b *builder) formerCommitter(ctx context.Context, c gitops.Commit, user string, inner gitops.OID) string {
	id, there := b.former[inner]
	if !there {
		return ""
	}
	former, err := b.request.Across.Commit(ctx, id)
	if err != nil { // the repository may have lost it
		return ""
	}
	c.Committer = former.Committer
	if by, _ := gitops.SplitIdent(former.Committer); by != user || !bytes.Equal(c.Bytes(), former.Bytes()) {
		return ""
	}
	return c.Committer
}

// date sets the committer of the outer commit of an inner one. Two inner commits that differ only in data that stays inside, such as
// the ghost's committer date after git commit --amend, would become the same outer commit within a second. date keeps them distinct by
// adding seconds to the date.
func (b *builder) date(c gitops.Commit, user string, inner gitops.OID) gitops.Commit {
	for at := b.now; ; at = at.Add(time.Second) {
		c.Committer = fmt.Sprintf("%s %d %s", user, at.Unix(), at.Format("-0700"))
		id := gitops.HashObject(b.request.Format, "commit", c.Bytes())
		if of, taken := b.taken[id]; (!taken || of == inner) && !b.plan.Ledger.HasOuter(id) {
			b.taken[id] = inner
			return c
		}
	}
}

// make stores a commit in the bridge.
func (b *builder) make(ctx context.Context, c gitops.Commit) (gitops.OID, error) {
	if b.request.Sign {
		return b.request.Bridge.Sign(ctx, c)
	}
	return b.request.Bridge.Make("commit", c.Bytes()), nil
}

// newestWhole returns the newest commit of the chain that was built together with everything it reaches, or empty.
func (b *builder) newestWhole() gitops.OID {
	return b.plan.Whole(func(inner gitops.OID) bool {
		_, built := b.done[inner]
		return built
	})
}

// keep discards the built commits of the chain that a commit does not reach.
func (b *builder) keep(commit gitops.OID) {
	wanted := gitops.SetOf(quarantine.Commits(b.plan.Reach(commit))...)
	b.fresh = append(b.fresh[:b.below], slices.DeleteFunc(b.fresh[b.below:], func(f Fresh) bool { return !wanted[f.Inner] })...)
}
