package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Graph reports which commits reach which; *[gitops.Git] is one.
type Graph interface {
	// Unreached returns the commits that tips reach and others do not, children before parents. Commits that are
	// missing reach nothing.
	Unreached(ctx context.Context, tips, others []gitops.OID) ([]gitops.OID, error)
}

// Facts are what a plan follows from.
type Facts struct {
	Tip       gitops.OID          // the inner commit to be promoted
	Links     []gitops.Link       // what Tip reaches, without landed commits and those of Brought; parents first
	Brought   map[gitops.OID]bool // inner commits that are commits of the user's branch: an agent can fetch them
	Ledger    *ledger.Ledger
	Decisions ledger.Decisions
}

// Plan lists what is built, and what it lands on.
type Plan struct {
	Facts
	Chain      []gitops.OID // new commits of the first-parent history, oldest first, without dropped ones
	Last       ledger.Pair  // the newest landed pair, which the first commit of Chain goes on
	Since      gitops.OID   // the commit from which the changes of Chain[0] count: Last's inner one, or one of Brought
	Fork       gitops.OID   // if Since is older than Last: the newest landed inner commit that Since has; else empty
	Dropped    int          // new commits that are left out
	Waits      int          // new commits that are built
	Supersedes []gitops.OID // landed outer commits that Chain[0] undoes, oldest first
}

// New makes a plan. The links of the result are ordered so that each commit of Chain comes right after what it
// reaches beside the commits before it: what lands with a commit is what comes before it.
func New(ctx context.Context, f Facts, inner, outer Graph) (*Plan, error) {
	p := &Plan{Facts: f, Last: f.Ledger.Last()}
	p.Since = p.Last.Inner
	chain, found := p.follow(f.Tip)
	p.arrange(chain)
	switch {
	case len(p.Chain) == 0 || found == p.Last.Inner:
		return p, nil
	case p.Brought[found]:
		return p, p.goOnFrom(ctx, outer, found)
	}
	return p, p.supersede(ctx, inner, outer)
}

// follow lists the new commits of a commit's first-parent history, oldest first, and returns the commit before
// them: the root if the history is another than the root's.
func (p *Plan) follow(tip gitops.OID) (chain []gitops.OID, found gitops.OID) {
	parents := map[gitops.OID][]gitops.OID{}
	for _, l := range p.Links {
		parents[l.Commit] = l.Parents
	}
	found = tip
	for of, waiting := parents[found]; waiting; of, waiting = parents[found] {
		chain = append(chain, found)
		if found = p.Ledger.Base.Inner; len(of) > 0 {
			found = of[0]
		}
	}
	slices.Reverse(chain)
	return chain, found
}

// arrange orders the links along the chain. A dropped merge is like its first parent: what only its other parents
// reach is left out.
func (p *Plan) arrange(chain []gitops.OID) {
	all := p.along(chain)
	p.Links = slices.Clone(all)
	for i, l := range p.Links {
		if p.Drops(l.Commit) {
			p.Links[i].Parents = l.Parents[:min(1, len(l.Parents))]
		}
	}
	p.Chain = slices.DeleteFunc(chain, p.Drops)
	p.Links = p.along(p.Chain)
	for _, l := range p.Links {
		if !p.Drops(l.Commit) {
			p.Waits++
		}
	}
	p.Dropped = len(all) - p.Waits
}

// along returns the links that the commits of a chain reach, each right before the first of them that reaches it,
// parents first.
func (p *Plan) along(chain []gitops.OID) []gitops.Link {
	waiting := map[gitops.OID]gitops.Link{}
	for _, l := range p.Links {
		waiting[l.Commit] = l
	}
	var links []gitops.Link
	for _, id := range chain {
		for todo := []gitops.OID{id}; len(todo) > 0; {
			l := waiting[todo[len(todo)-1]]
			before := len(todo)
			for _, parent := range l.Parents {
				if _, there := waiting[parent]; there {
					todo = append(todo, parent)
				}
			}
			if len(todo) > before {
				continue // its parents first
			}
			todo = todo[:before-1]
			if l.Commit != "" { // else it was another commit's parent, too
				links = append(links, l)
				delete(waiting, l.Commit)
			}
		}
	}
	return links
}

// Drops reports whether the user leaves an inner commit out.
func (p *Plan) Drops(inner gitops.OID) bool { return p.Decisions.DropOf(inner) != nil }

// goOnFrom plans for a first new commit on top of a commit of the user's branch: its changes count from that one. If
// that one is older than the last landed commit, the first new commit also undoes what of the agent's has landed
// since then, and nothing else.
func (p *Plan) goOnFrom(ctx context.Context, outer Graph, found gitops.OID) error {
	p.Since = found
	landed := p.Last.Outer
	beyond, err := outer.Unreached(ctx, []gitops.OID{found}, []gitops.OID{landed})
	if err != nil || found == landed || len(beyond) > 0 {
		return err
	}
	undone, err := outer.Unreached(ctx, []gitops.OID{landed}, []gitops.OID{found})
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(undone) {
		if p.Ledger.HasOuter(id) && !p.Ledger.Superseded(id) {
			p.Supersedes = append(p.Supersedes, id)
		}
	}
	p.Fork, err = p.landedBefore(ctx, outer, found)
	return err
}

// landedBefore returns the inner commit of the newest landed one that a commit of the branch has; the root if it
// has none.
func (p *Plan) landedBefore(ctx context.Context, outer Graph, commit gitops.OID) (gitops.OID, error) {
	var landed []gitops.OID
	for _, l := range p.Ledger.Landed {
		landed = append(landed, l.Outer)
	}
	after, err := outer.Unreached(ctx, landed, []gitops.OID{commit})
	left := map[gitops.OID]bool{}
	for _, id := range after {
		left[id] = true
	}
	for _, l := range slices.Backward(p.Ledger.Landed) {
		if !left[l.Outer] {
			return l.Inner, err
		}
	}
	return p.Ledger.Base.Inner, err
}

// supersede lists the landed commits that the first new one undoes. Those that the agent still has by way of a
// commit of the user's branch are not undone.
func (p *Plan) supersede(ctx context.Context, inner, outer Graph) error {
	undone, err := inner.Unreached(ctx, []gitops.OID{p.Last.Inner}, p.Chain[:1])
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(undone) {
		landed, ok := p.Ledger.Image(id)
		if ok && id != p.Ledger.Base.Inner && !p.Ledger.Superseded(landed.Outer) {
			p.Supersedes = append(p.Supersedes, landed.Outer)
		}
	}
	if len(p.Brought) == 0 || len(p.Supersedes) == 0 {
		return nil
	}
	var brought []gitops.OID
	for id := range p.Brought {
		brought = append(brought, id)
	}
	left, err := outer.Unreached(ctx, p.Supersedes, brought)
	p.Supersedes = slices.DeleteFunc(p.Supersedes, func(id gitops.OID) bool { return !slices.Contains(left, id) })
	return err
}

// Reach returns the links that a commit reaches, itself included, in their order.
func (p *Plan) Reach(commit gitops.OID) []gitops.Link {
	wanted := map[gitops.OID]bool{commit: true}
	var reached []gitops.Link
	for _, l := range slices.Backward(p.Links) { // children before parents
		if !wanted[l.Commit] {
			continue
		}
		reached = append(reached, l)
		for _, parent := range l.Parents {
			wanted[parent] = true
		}
	}
	slices.Reverse(reached)
	return reached
}

// Whole returns the newest commit of the chain that is done with all that it reaches; empty if there is none.
func (p *Plan) Whole(done func(inner gitops.OID) bool) gitops.OID {
	whole := gitops.OID("")
	for _, id := range p.Chain {
		for _, l := range p.Reach(id) {
			if !done(l.Commit) && !p.Drops(l.Commit) {
				return whole
			}
		}
		whole = id
	}
	return whole
}

// Keeps reports whether the pending pairs are still part of the plan, with the same first commit on the branch: that
// commit is unlike the others, which have the images of their own parents.
func (p *Plan) Keeps(tail []ledger.Pair) bool {
	waiting := map[gitops.OID]bool{}
	for _, l := range p.Links {
		waiting[l.Commit] = true
	}
	for _, t := range tail {
		if !waiting[t.Inner] || p.Drops(t.Inner) {
			return false
		}
	}
	chain, _ := p.follow(tail[len(tail)-1].Inner)
	chain = slices.DeleteFunc(chain, p.Drops)
	return len(chain) > 0 && chain[0] == p.Chain[0]
}

// After returns the links that are not pending yet; none if all of those are dropped.
func (p *Plan) After(tail []ledger.Pair) []gitops.Link {
	pending := map[gitops.OID]bool{}
	for _, t := range tail {
		pending[t.Inner] = true
	}
	var links []gitops.Link
	fresh := false
	for _, l := range p.Links {
		if !pending[l.Commit] {
			links = append(links, l)
			fresh = fresh || !p.Drops(l.Commit)
		}
	}
	if !fresh {
		return nil
	}
	return links
}

// ErrNotPending says that a commit is not one of those that wait on the line that lands.
var ErrNotPending = errors.New("not one of the pending commits")

// leastDigits is the shortest abbreviation of an inner commit.
const leastDigits = 7

// Digits reports whether a name can be an inner commit's.
func Digits(name string) bool {
	return len(name) >= leastDigits && strings.Trim(strings.ToLower(name), "0123456789abcdef") == ""
}

// Find returns the one waiting commit that a name stands for, and its outer name if it has one. The name is at
// least seven digits of the inner commit, or a revision that git resolves to the outer one (empty if it does not).
func (p *Plan) Find(name string, revision gitops.OID) (gitops.Link, gitops.OID, error) {
	outer := map[gitops.OID]gitops.OID{}
	for _, t := range p.Ledger.Tail {
		outer[t.Inner] = t.Outer
	}
	var found []gitops.Link
	for _, l := range p.Links {
		o := outer[l.Commit]
		if o != "" && o == revision || Digits(name) && strings.HasPrefix(string(l.Commit), strings.ToLower(name)) {
			found = append(found, l)
		}
	}
	if len(found) != 1 || p.Drops(found[0].Commit) {
		return gitops.Link{}, "", fmt.Errorf("commit %q: %w", gitops.Escape(name), ErrNotPending)
	}
	return found[0], outer[found[0].Commit], nil
}

// Target returns the inner commit that a landing ends with: pending, new or landed. A name stands for it as in
// [Plan.Find], unless an earlier cycle has found it already. [ErrNotPending] says that no landing can end there.
func (p *Plan) Target(name string, revision, found gitops.OID) (gitops.OID, error) {
	for _, pairs := range [][]ledger.Pair{p.Ledger.Tail, p.Ledger.Landed} {
		i := slices.IndexFunc(pairs, func(l ledger.Pair) bool { return l.Outer == revision })
		if found == "" && i >= 0 {
			found = pairs[i].Inner
		}
	}
	if found == "" {
		found = p.landedAs(name)
	}
	if found == "" {
		link, _, err := p.Find(name, revision)
		if err != nil {
			return "", err
		}
		found = link.Commit
	}
	if !p.Ledger.Has(found) && !slices.Contains(p.Chain, found) {
		return "", fmt.Errorf("commit %q: %w", gitops.Escape(name), ErrNotPending)
	}
	return found, nil
}

// landedAs returns the only landed inner commit with an abbreviation; empty if there is none or several.
func (p *Plan) landedAs(name string) gitops.OID {
	found := gitops.OID("")
	if !Digits(name) {
		return found
	}
	for _, l := range p.Ledger.Landed {
		if !strings.HasPrefix(string(l.Inner), strings.ToLower(name)) {
			continue
		}
		if found != "" {
			return ""
		}
		found = l.Inner
	}
	return found
}
