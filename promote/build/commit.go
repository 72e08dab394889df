package build

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// treatment is how the trees of a chain are made.
type treatment int

const (
	asTheyAre  treatment = iota // the agent's
	merged                      // merged with what is in the commit they land on
	inPortions                  // merged, and if that takes long, only so many that they can land first
)

// portionTime is how long merging may take before what is built lands: with each commit that the user makes
// meanwhile, all of it has to be built again.
const portionTime = 500 * time.Millisecond

// authorKept bounds the bytes of an inner author that are kept for the note.
const authorKept = 8 << 10

// builder builds one chain of commits.
type builder struct {
	request Request
	plan    *history.Plan
	onto    gitops.OID // what the first new commit lands on: the image of the last landed one
	how     treatment
	now     time.Time

	done    map[gitops.OID]ledger.Pair // pending or built, by inner commit
	trees   map[gitops.OID]gitops.OID  // by commit; of inner ones complete, and without dropped changes
	taken   map[gitops.OID]bool        // names of outer commits that are in use
	outside map[gitops.OID]bool        // parents that are not built here
	fresh   []Fresh
	// stopped are the paths at which a merge conflicted; what was built before that stays.
	stopped []string
	refused string // why the patch engine stopped there
	merging bool   // trees had to be merged, which takes time
	late    bool   // it took too long: what was built by then is whole, the rest is left out
	// raw are the agent's own trees of built commits from which the changes of dropped ones were taken.
	raw map[gitops.OID]gitops.OID
	// overlay holds what was left out of the snapshot; nil for a whole one.
	overlay *gitops.Overlay
	// stands holds, by inner commit, what the branch has in the place of landed commits that are not on it any more.
	stands map[gitops.OID]gitops.OID
	// lacking is what does not apply without dropped commits, if that is why it stopped.
	lacking *ledger.Dropped
}

// build builds links on top of what is pending already.
func (r Request) build(ctx context.Context, links []gitops.Link, pending []ledger.Pair, onto gitops.OID, how treatment) (*builder, error) {
	b := &builder{request: r, plan: r.Plan, onto: onto, how: how, raw: map[gitops.OID]gitops.OID{}, now: time.Now(), done: map[gitops.OID]ledger.Pair{},
		trees: map[gitops.OID]gitops.OID{}, taken: map[gitops.OID]bool{}, outside: map[gitops.OID]bool{}}
	for _, t := range pending {
		b.done[t.Inner], b.taken[t.Outer] = t, true
	}
	if r.Part {
		if err := b.cover(ctx); err != nil {
			return b, err
		}
	}
	if err := b.stand(ctx, links); err != nil {
		return b, err
	}
	whole := b.lastOnto(links)
	for i, l := range links {
		r.Progress(i+1, len(links))
		inner, err := r.Inside.Commit(ctx, l.Commit)
		if err != nil {
			return b, err
		}
		if err := b.commit(ctx, l, inner); err != nil {
			return b, err
		}
		if b.how == inPortions && b.merging && i >= whole && time.Since(b.now) > portionTime && slices.Contains(b.plan.Chain, l.Commit) {
			b.late = true // all that a commit reaches was built before it
			b.keep(l.Commit)
		}
		if b.stopped != nil || b.late {
			break
		}
	}
	return b, nil
}

// lastOnto counts the links up to the last one that has the newest landed commit as a parent. That parent's image is
// the branch as it is now, and is another one once a portion has landed.
func (b *builder) lastOnto(links []gitops.Link) int {
	for i, l := range slices.Backward(links) {
		if slices.Contains(l.Parents, b.plan.Last.Inner) {
			return i + 1
		}
	}
	return 0
}

// conflicts reports whether the user's commits are why building stopped.
func (b *builder) conflicts() bool { return b.stopped != nil && b.lacking == nil }

func (b *builder) conflict() Conflict {
	return Conflict{Paths: b.stopped, Refused: b.refused, Lacking: b.lacking}
}

// commit builds one commit.
func (b *builder) commit(ctx context.Context, l gitops.Link, inner gitops.Commit) error {
	parents, err := b.parents(l)
	if err != nil {
		return err
	}
	if inner.Tree, err = b.complete(ctx, inner.Tree); err != nil {
		return err
	}
	theirs, err := b.without(ctx, l, inner)
	if err != nil || b.stopped != nil {
		return err
	}
	b.trees[l.Commit] = theirs
	if b.plan.Drops(l.Commit) {
		b.done[l.Commit] = b.standIn(l)
		return nil
	}
	tree, err := b.tree(ctx, l, theirs, parents)
	if err == nil && b.stopped == nil {
		err = b.patch(ctx, l, theirs, parents, tree)
	}
	if err != nil || b.stopped != nil {
		return err
	}
	author, written := gitops.SplitIdent(inner.Author)
	user := b.request.User.String()
	outer := b.date(gitops.Commit{Tree: tree, Parents: parents, Author: user + " " + written,
		Encoding: inner.Encoding, Message: inner.Message}, user)
	id, err := b.make(ctx, outer)
	if err != nil {
		return err
	}
	p := ledger.Pair{Inner: l.Commit, Outer: id, Merged: tree != inner.Tree}
	if l.Commit == b.plan.Chain[0] {
		p.Supersedes = b.plan.Supersedes
	}
	b.done[l.Commit], b.trees[id] = p, tree
	b.fresh = append(b.fresh, Fresh{p, strings.Clone(author[:min(len(author), authorKept)])})
	return nil
}

// parents returns the images of a commit's parents, each once.
func (b *builder) parents(l gitops.Link) ([]gitops.OID, error) {
	var outer []gitops.OID
	add := func(o gitops.OID, built bool) {
		if !slices.Contains(outer, o) {
			outer = append(outer, o)
		}
		if !built {
			b.outside[o] = true
		}
	}
	inner := l.Parents
	if l.Commit == b.plan.Chain[0] {
		add(b.onto, false)
		inner = inner[min(1, len(inner)):]
	}
	for _, i := range inner {
		p, ok := b.image(i)
		if !ok {
			return nil, &gitops.Invalid{Reason: fmt.Sprintf("commit %s names the parent %s, which is no commit of this workspace", l.Commit, i)}
		}
		add(p.Outer, b.trees[p.Outer] != "" && p.Outer != b.onto)
	}
	return outer, nil
}

// image returns the pair of an inner commit; the image of the last landed one is where the branch stands.
func (b *builder) image(inner gitops.OID) (p ledger.Pair, ok bool) {
	for {
		if p, ok = b.done[inner]; ok {
			return p, true
		}
		if b.plan.Brought[inner] {
			return ledger.Pair{Inner: inner, Outer: inner}, true
		}
		if p, ok = b.plan.Ledger.Image(inner); ok {
			if inner == b.plan.Last.Inner {
				p.Outer = b.onto
			} else if stands := b.stands[inner]; stands != "" {
				p.Outer = stands
			}
			return p, true
		}
		d := b.plan.Decisions.DropOf(inner)
		if d == nil || d.Parent == "" {
			return p, false
		}
		inner = d.Parent // a dropped commit has no image of its own
	}
}

// standIn returns the image of a dropped commit: its first parent's, or where the branch stands.
func (b *builder) standIn(l gitops.Link) ledger.Pair {
	p := ledger.Pair{Outer: b.onto, Merged: b.plan.Last.Merged}
	if len(l.Parents) > 0 {
		p, _ = b.image(l.Parents[0])
	}
	return ledger.Pair{Inner: l.Commit, Outer: p.Outer, Merged: p.Merged}
}

// date gives a commit its committer. Two inner commits that differ in nothing but what stays inside (the ghost's
// committer date, say) would become one; a second later they are two.
func (b *builder) date(c gitops.Commit, user string) gitops.Commit {
	for at := b.now; ; at = at.Add(time.Second) {
		c.Committer = fmt.Sprintf("%s %d %s", user, at.Unix(), at.Format("-0700"))
		id := gitops.HashObject(b.request.Format, "commit", c.Bytes())
		if !b.taken[id] && !b.plan.Ledger.HasOuter(id) {
			b.taken[id] = true
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

// newestWhole returns the newest commit of the chain that was built with all it reaches; empty if there is none.
func (b *builder) newestWhole() gitops.OID {
	return b.plan.Whole(func(inner gitops.OID) bool {
		_, built := b.done[inner]
		return built
	})
}

// keep leaves out what was built and is not reached by a commit.
func (b *builder) keep(commit gitops.OID) {
	wanted := map[gitops.OID]bool{}
	for _, l := range b.plan.Reach(commit) {
		wanted[l.Commit] = true
	}
	b.fresh = slices.DeleteFunc(b.fresh, func(f Fresh) bool { return !wanted[f.Inner] })
}
