package promote

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// builder makes outer-ready commits of links: the messages and author dates of the inner ones, the user's identity,
// parents mapped, and trees that are the same, or merged with what the user did.
type builder struct {
	*plan
	onto gitops.OID // what the first new commit lands on: the image of the last landed one
	how  treatment
	now  time.Time

	done    map[gitops.OID]pair // pending or built, by their inner commits
	trees   map[gitops.OID]gitops.OID
	taken   map[gitops.OID]bool
	outside map[gitops.OID]bool // parents that are not built here
	pairs   []pair
	authors []string
	// stopped are the paths at which a merge conflicted; what was built before that stays.
	stopped []string
	refused string // why the patch engine stopped there
	merging bool   // trees had to be merged, which takes time
	late    bool   // it took too long: what was built by then is whole, the rest is left out
	// raw are the agent's own trees of built commits from which the changes of dropped ones were taken.
	raw map[gitops.OID]gitops.OID
	// overlay holds what was left out of the snapshot; nil for a whole one.
	overlay *gitops.Overlay
	// stands holds, by inner commits, what the branch has in the place of landed commits that are not on it any more.
	stands map[gitops.OID]gitops.OID
	// lacking is what does not apply without what was dropped, if that is why it stopped.
	lacking *Dropped
}

// treatment is what becomes of the trees.
type treatment int

const (
	asTheyAre  treatment = iota // the agent's
	merged                      // with what is in the commit they land on
	inPortions                  // merged, and if that takes long, only so many that they can land first
)

// buildTime is how long merging may take before what there is lands: with each commit that the user makes
// meanwhile it has to be done again.
const buildTime = 500 * time.Millisecond

// authorKept is how much of an inner author is kept for the note, in which no text is longer.
const authorKept = 8 << 10

// commits builds links on top of what is pending already.
func (p *plan) commits(ctx context.Context, links []gitops.Link, pending []pair, onto gitops.OID, how treatment) (*builder, error) {
	b := &builder{plan: p, onto: onto, how: how, raw: map[gitops.OID]gitops.OID{}, now: time.Now(), done: map[gitops.OID]pair{},
		trees: map[gitops.OID]gitops.OID{}, taken: map[gitops.OID]bool{}, outside: map[gitops.OID]bool{}}
	for _, t := range pending {
		b.done[t.inner], b.taken[t.outer] = t, true
	}
	if p.Record.Part {
		if err := b.cover(ctx); err != nil {
			return b, err
		}
	}
	if err := b.stand(ctx, links); err != nil {
		return b, err
	}
	whole := p.lastOnto(links)
	for i, l := range links {
		p.at("building commits", i+1, len(links))
		inner, err := p.inside.Commit(ctx, l.Commit)
		if err != nil {
			return b, err
		}
		if err := b.commit(ctx, l, inner); err != nil {
			return b, err
		}
		if b.how == inPortions && b.merging && i >= whole && time.Since(b.now) > buildTime && slices.Contains(b.chain, l.Commit) {
			b.late = true // all that a commit reaches was built before it
			b.keep(l.Commit)
		}
		if b.stopped != nil || b.late {
			break
		}
	}
	return b, nil
}

// lastOnto counts the links up to the last one that has the newest landed commit as a parent. That one's image is the branch as it is
// now, and no longer once a portion has landed.
func (p *plan) lastOnto(links []gitops.Link) int {
	for i, l := range slices.Backward(links) {
		if slices.Contains(l.Parents, p.last.inner) {
			return i + 1
		}
	}
	return 0
}

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
	if b.drops(l.Commit) {
		b.done[l.Commit] = b.instead(l)
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
	user := b.settings.User.String()
	outer := b.date(gitops.Commit{Tree: tree, Parents: parents, Author: user + " " + written,
		Encoding: inner.Encoding, Message: inner.Message}, user)
	id, err := b.keepCommit(ctx, outer)
	if err != nil {
		return err
	}
	p := pair{inner: l.Commit, outer: id, merged: tree != inner.Tree}
	if l.Commit == b.chain[0] {
		p.supersedes = b.supersedes
	}
	b.done[l.Commit], b.trees[id] = p, tree
	b.pairs, b.authors = append(b.pairs, p), append(b.authors, strings.Clone(author[:min(len(author), authorKept)]))
	return nil
}

// parents are the images of a commit's parents, each once.
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
	if l.Commit == b.chain[0] {
		add(b.onto, false)
		inner = inner[min(1, len(inner)):]
	}
	for _, i := range inner {
		p, ok := b.image(i)
		if !ok {
			return nil, &gitops.Invalid{Reason: fmt.Sprintf("commit %s names the parent %s, which is no commit of this workspace", l.Commit, i)}
		}
		add(p.outer, b.trees[p.outer] != "" && p.outer != b.onto)
	}
	return outer, nil
}

// image finds what an inner commit has become outside; the image of the last landed one is where the branch stands.
func (b *builder) image(inner gitops.OID) (p pair, ok bool) {
	for {
		if p, ok = b.done[inner]; ok {
			return p, true
		}
		if b.brought[inner] {
			return pair{inner: inner, outer: inner}, true
		}
		if p, ok = b.ledger.pairs[inner]; ok {
			if inner == b.last.inner {
				p.outer = b.onto
			} else if stands := b.stands[inner]; stands != "" {
				p.outer = stands
			}
			return p, true
		}
		d := b.gate.decided.dropped(inner)
		if d == nil || d.Parent == "" {
			return p, false
		}
		inner = d.Parent // nothing has become of it
	}
}

// tree is the tree of an outer commit: the three-way merge of what the agent changed since the first parent, and
// what the first parent's image has.
func (b *builder) tree(ctx context.Context, l gitops.Link, theirs gitops.OID, parents []gitops.OID) (gitops.OID, error) {
	first := b.before(l)
	if first == "" || b.how == asTheyAre || b.same(first, parents[0]) {
		return theirs, nil
	}
	base, err := b.baseTree(ctx, l)
	if err != nil {
		return "", err
	}
	ours, err := b.treeOf(ctx, parents[0])
	switch {
	case err != nil:
		return "", err
	case ours == base || ours == theirs:
		return theirs, nil
	case base == theirs:
		return ours, nil
	}
	b.merging = true
	merge := gitops.Merge{Base: base, Ours: ours, Theirs: theirs}
	tree, conflicts, err := b.bridge.Merge(ctx, merge)
	if err != nil && b.fetchPromised(ctx, b.onto) {
		tree, conflicts, err = b.bridge.Merge(ctx, merge)
	}
	b.stopped = conflicts
	return tree, err
}

// before is the inner commit since which a commit's changes count: its first parent, and what landed last for the first
// to land. It is empty for a history of its own that was merged.
func (b *builder) before(l gitops.Link) gitops.OID {
	switch {
	case l.Commit == b.chain[0]:
		return b.since
	case len(l.Parents) == 0:
		return ""
	}
	return l.Parents[0]
}

// same tells, without a look at any tree, that an inner commit and its image have the same one.
func (b *builder) same(inner, image gitops.OID) bool {
	if inner == image {
		return true // a commit of the branch
	}
	p, ok := b.done[inner]
	if !ok {
		p = b.ledger.pairs[inner]
	}
	return p.outer == image && !p.merged
}

func (b *builder) treeOf(ctx context.Context, commit gitops.OID) (gitops.OID, error) {
	if tree, ok := b.trees[commit]; ok {
		return tree, nil
	}
	c, err := b.across.Commit(ctx, commit)
	b.trees[commit] = c.Tree
	return c.Tree, err
}

// date gives a commit its committer. Two inner commits that differ in nothing but what stays inside (the ghost's
// committer date, say) would become one; a second later they are two.
func (b *builder) date(c gitops.Commit, user string) gitops.Commit {
	for at := b.now; ; at = at.Add(time.Second) {
		c.Committer = fmt.Sprintf("%s %d %s", user, at.Unix(), at.Format("-0700"))
		id := gitops.HashObject(b.Record.Format, "commit", c.Bytes())
		if !b.taken[id] && !b.ledger.outer[id] {
			b.taken[id] = true
			return c
		}
	}
}

// keepCommit names a commit and keeps it: signed at once, or with the others.
func (b *builder) keepCommit(ctx context.Context, c gitops.Commit) (gitops.OID, error) {
	if b.settings.Sign {
		return b.bridge.Sign(ctx, c)
	}
	return b.bridge.Make("commit", c.Bytes()), nil
}

// newestWhole is the newest commit of the first-parent history that was built with all it reaches; empty if
// there is none.
func (b *builder) newestWhole() gitops.OID {
	whole := gitops.OID("")
	for _, id := range b.chain {
		for _, l := range b.reach(id) {
			if _, built := b.done[l.Commit]; !built {
				return whole
			}
		}
		whole = id
	}
	return whole
}

// keep leaves out what was built and is not reached by commit.
func (b *builder) keep(commit gitops.OID) {
	wanted := map[gitops.OID]bool{}
	for _, l := range b.reach(commit) {
		wanted[l.Commit] = true
	}
	var kept builder
	for i, p := range b.pairs {
		if wanted[p.inner] {
			kept.pairs, kept.authors = append(kept.pairs, p), append(kept.authors, b.authors[i])
		}
	}
	b.pairs, b.authors = kept.pairs, kept.authors
}
