package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Graph reports which commits reach which. *[gitops.Git] implements it.
type Graph interface {
	// Unreached returns the commits that tips reach and others do not reach, children before parents. Missing commits
	// reach nothing.
	Unreached(ctx context.Context, tips, others []gitops.OID) ([]gitops.OID, error)
}

// Facts is the input of a plan.
type Facts struct {
	Tip       gitops.OID          // the inner commit to promote
	Links     []quarantine.Link   // the commits that Tip reaches, parents first, without landed commits and without the commits of Brought
	Brought   map[gitops.OID]bool // inner commits that are commits of the user's branch, because the agent can fetch them
	Ledger    *ledger.Ledger
	Decisions ledger.Decisions
	Source
	Left
}

// Plan lists the commits to build, and the commit to build them on.
type Plan struct {
	Facts
	Chain      []gitops.OID // new commits of the first-parent history, oldest first, without those left out
	Aside      []Aside      // other commits to build, in the agent's order: those with First before Chain, the others on top of it; see [Plan.Walk]
	Last       ledger.Pair  // the newest landed pair, the parent of the first commit of Chain
	Since      gitops.OID   // the commit from which the changes of Chain[0] count: Last.Inner, or a commit of Brought
	Fork       gitops.OID   // if Since is older than Last, the newest landed inner commit that Since reaches; empty otherwise
	Dropped    int          // number of new commits that are left out
	Waits      int          // number of new commits that are built
	Supersedes []gitops.OID // landed outer commits that Chain[0] undoes, oldest first
	// Lost lists the synced pairs that Since has, itself or as copies, and that Chain[0] does not reach, oldest first. Chain[0] must
	// not undo them, because they are the user's commits.
	Lost []ledger.Pair
	// Again lists the commits that were left out when Last landed, and that Chain[0] takes back or that are new again, because it undoes
	// Last. The tree of Last's inner commit has their changes, and the branch does not.
	Again []gitops.OID
	// OnTop lists the landed commits that Last does not reach and that are on the branch all the same, oldest first: they were set aside,
	// and landed while Last was of another history, or their line has lost them. It is empty unless Chain[0] undoes one of them or Last: its changes
	// then count from both.
	OnTop []gitops.OID
	// Off lists the landed commits that Since and Chain[0] reach, and whose changes the branch does not have any more, oldest first. It is empty if
	// only commits of main have landed.
	Off []gitops.OID
	// Shared lists the parts of the superseded changes that another line has landed, too. Chain[0] must not undo them.
	Shared []Part
	// behind has the commits that were left out, and that found reaches and Last does not. Chain[0] must not bring their changes.
	behind map[gitops.OID]bool
	found  gitops.OID // the commit before the new ones in the first-parent history

	cut       map[gitops.OID][]gitops.OID // commits that only a dropped merge reaches, by the oldest such merge
	left      map[gitops.OID]bool         // commits of Links and Aside that were set aside in this plan
	trees     map[gitops.OID]gitops.OID   // see [Plan.Tree]
	taken     gitops.Set[gitops.OID]      // see [Plan.TakenOut]
	blocked   map[gitops.OID][]string     // see [Plan.Blocked]
	postpones bool                        // see [Plan.Postpones]
	before    map[gitops.OID]int          // number of commits set aside before a commit of the agent's first-parent history
	lined     bool                        // commits of several lines have landed, or will
	lost      []gitops.OID                // the landed commits that a plan of several lines takes off the branch, oldest first
	gone      gitops.Set[gitops.OID]      // the landed commits that main has lost, if another line is promoted
	offMain   gitops.Set[gitops.OID]      // the new commits that main does not have, if another line is promoted
	merged    map[gitops.OID]Merged       // see [Plan.Merged]
	all       []quarantine.Link           // all new commits
	compared  bool                        // [Plan.KeepShared] was called

	inner, outer Graph
}

// New makes a plan. It orders the links so that each commit of Chain directly follows the commits that only it adds
// to the commits before it. The commits that land with a commit of Chain are therefore the links before it.
func New(ctx context.Context, f Facts, inner, outer Graph) (p *Plan, err error) {
	p = &Plan{Facts: f}
	p.Earlier = p.kept(f.Earlier)
	p.Aside = p.Earlier
	p.Links = p.Beside(f.Links)
	links := p.Links
	chain, found := p.newChain(f.Tip)
	p.found, p.inner, p.outer, p.all = found, inner, outer, links
	p.arrange(chain)
	p.Waits += len(p.Aside)
	if err = p.setLost(ctx, inner); err == nil {
		err = p.setOffMain(ctx, inner, f.Links)
	}
	if err == nil {
		err = p.count(ctx)
	}
	return p, err
}

// begin sets the fields that describe what the first new commit of the chain counts from, and what it undoes. links are all new commits.
func (p *Plan) begin(ctx context.Context, inner, outer Graph, links []quarantine.Link) error {
	switch {
	case len(p.Chain) == 0:
		return nil
	case p.lined:
		return p.beginLine(ctx, outer)
	case p.found == p.Last.Inner:
		undone, err := p.setOnTop(ctx, inner)
		if len(undone) == 0 {
			p.OnTop = nil
		}
		return errors.Join(err, p.supersede(ctx, undone, outer))
	case p.Brought[p.found]:
		err := p.goOnFrom(ctx, outer, p.found)
		if err == nil && p.Fork != "" {
			_, err = p.undo(ctx, links, inner, p.Fork)
		}
		return err
	}
	if image, _ := p.Ledger.Image(p.found); image.Synced {
		newer, err := inner.Unreached(ctx, []gitops.OID{p.Last.Inner}, []gitops.OID{p.found})
		if err != nil || len(newer) == 0 {
			p.Since = p.found
			return err
		}
	}
	undone, err := p.undo(ctx, links, inner, p.found)
	if err == nil {
		err = p.goBack(ctx, inner, p.found)
	}
	if err != nil {
		return err
	}
	return p.supersede(ctx, undone, outer)
}

// undo sets Again, and returns the commits that Last reaches and Chain[0] does not. links are all new commits. since is the newest landed
// commit that Chain[0] does not undo. What since reaches is the same in both trees.
func (p *Plan) undo(ctx context.Context, links []quarantine.Link, inner Graph, since gitops.OID) (undone []gitops.OID, err error) {
	last := []gitops.OID{p.Last.Inner}
	if undone, err = inner.Unreached(ctx, last, p.Chain[:1]); err != nil {
		return nil, err
	}
	beside, err := p.setOnTop(ctx, inner)
	undone = append(beside, undone...)
	left := p.Ledger.LeftOut()
	if err == nil {
		undone, err = p.withoutForms(ctx, inner, undone, p.Chain[0])
	}
	if err != nil || len(left) == 0 {
		return undone, err
	}
	later, err := inner.Unreached(ctx, last, []gitops.OID{since})
	for _, id := range left {
		isNew := slices.ContainsFunc(links, func(l quarantine.Link) bool { return l.Commit == id })
		if slices.Contains(later, id) && (isNew || slices.Contains(undone, id)) {
			p.Again = append(p.Again, id)
		}
	}
	return undone, err
}

// Found returns the newest commit of the agent's first-parent history that is not new.
func (p *Plan) Found() gitops.OID { return p.found }

// Beside returns links without the commits that were left out and that landed commits follow.
func (f Facts) Beside(links []quarantine.Link) []quarantine.Link {
	return slices.DeleteFunc(slices.Clone(links), func(l quarantine.Link) bool { return f.leftOut(l.Commit) })
}

func (f Facts) leftOut(inner gitops.OID) bool {
	return slices.ContainsFunc(f.Earlier, func(a Aside) bool { return a.Commit == inner })
}

// newChain lists the new commits of a commit's first-parent history, oldest first, and returns the commit before them.
// If the history ends in a root of its own, that is the airlock's root.
func (p *Plan) newChain(tip gitops.OID) (chain []gitops.OID, found gitops.OID) {
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

// arrange orders the links along the chain. A dropped merge counts as its first parent, so that the commits that only
// its other parents reach are left out.
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
	p.cut = p.cutFrom(all)
}

// along returns the links that the commits of a chain reach, parents first. Each link comes right before the first
// commit of the chain that reaches it.
func (p *Plan) along(chain []gitops.OID) []quarantine.Link {
	waiting := map[gitops.OID]quarantine.Link{}
	for _, l := range p.Links {
		waiting[l.Commit] = l
	}
	var links []quarantine.Link
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
			if l.Commit != "" { // empty if it also was a parent of another commit
				links = append(links, l)
				delete(waiting, l.Commit)
			}
		}
	}
	return links
}

// Drops reports whether the user leaves an inner commit out.
func (f Facts) Drops(inner gitops.OID) bool { return f.dropOf(inner) != nil }

// dropOf returns the decision to leave an inner commit out, or nil. A decision on a landed commit leaves nothing out: a redo was
// killed before it had removed the decision of the undo.
func (f Facts) dropOf(inner gitops.OID) *ledger.Dropped {
	if f.Ledger.Has(inner) {
		return nil
	}
	return f.Decisions.DropOf(inner)
}

// goOnFrom plans a first new commit on top of a commit of the user's branch. The changes of the new commit count from
// the branch's commit. If the branch's commit is older than the last landed commit, the new commit also undoes the
// agent's commits that have landed since then, and nothing else.
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
	off := gitops.SetOf(ledger.Outers(p.Ledger.OffMain())...)
	for _, id := range slices.Backward(undone) {
		if p.Ledger.HasOuter(id) && !p.Ledger.Superseded(id) && !off[id] {
			p.Supersedes = append(p.Supersedes, id)
		}
	}
	p.Fork, err = p.landedBefore(ctx, outer, found)
	return err
}

// landedBefore returns the inner commit of the newest landed commit that a commit of the branch reaches, or the root
// if it reaches none.
func (p *Plan) landedBefore(ctx context.Context, outer Graph, commit gitops.OID) (gitops.OID, error) {
	after, err := outer.Unreached(ctx, ledger.Outers(p.Ledger.Landed), []gitops.OID{commit})
	left := gitops.SetOf(after...)
	for _, l := range slices.Backward(p.Ledger.Landed) {
		if !left[l.Outer] && !l.OffMain() {
			return l.Inner, err
		}
	}
	return p.Ledger.Base.Inner, err
}

// supersede lists the landed commits that the first new commit undoes. It leaves out a landed commit that the agent
// still reaches through a commit of the user. undone are the commits that the first new one does not reach.
func (p *Plan) supersede(ctx context.Context, undone []gitops.OID, outer Graph) error {
	for _, id := range slices.Backward(undone) {
		landed, ok := p.Ledger.Image(id)
		if synced, there := p.Ledger.Image(landed.Copy); there {
			p.Lost = append(p.Lost, synced)
		}
		switch {
		case !ok || id == p.Ledger.Base.Inner:
		case landed.Synced:
			p.Lost = append(p.Lost, landed)
		case !p.Ledger.Superseded(landed.Outer):
			p.Supersedes = append(p.Supersedes, landed.Outer)
		}
	}
	if len(p.Brought) == 0 || len(p.Supersedes) == 0 {
		return nil
	}
	left, err := outer.Unreached(ctx, p.Supersedes, slices.Collect(maps.Keys(p.Brought)))
	p.Supersedes = slices.DeleteFunc(p.Supersedes, func(id gitops.OID) bool { return !slices.Contains(left, id) })
	return err
}

// Reach returns the links that a commit reaches, including itself, in the order of Links.
func (p *Plan) Reach(commit gitops.OID) []quarantine.Link {
	wanted := gitops.SetOf(commit)
	var reached []quarantine.Link
	for _, l := range slices.Backward(p.Links) { // children before parents
		if !wanted[l.Commit] {
			continue
		}
		reached = append(reached, l)
		wanted.Add(l.Parents...)
	}
	slices.Reverse(reached)
	return reached
}

// RefusedBefore returns the verdicts by which the user leaves out commits that an inner commit follows. left are the commits that were left
// out when later ones landed and that the agent's history still has. A commit that the agent has amended away cannot land any more, so a
// verdict on it does not matter.
func (p *Plan) RefusedBefore(inner gitops.OID, left []gitops.OID) []ledger.Reviewed {
	there := gitops.SetOf(append(quarantine.Commits(p.Reach(inner)), left...)...)
	return slices.DeleteFunc(slices.Clone(p.Decisions.Reviewed), func(r ledger.Reviewed) bool { return !r.Word.LeavesOut() || !there[r.Inner] })
}

// Whole returns the newest commit of the chain that is done together with everything it reaches, or empty.
func (p *Plan) Whole(done func(inner gitops.OID) bool) gitops.OID {
	whole := gitops.OID("")
	for _, id := range p.Chain {
		for _, l := range p.Reach(id) {
			if !done(l.Commit) && !p.LeavesOut(l.Commit) {
				return whole
			}
		}
		whole = id
	}
	return whole
}

// Keeps reports whether the pending pairs are still part of the plan, lack no commit before them that is not left out any more, are in the
// agent's order, and their first commit on the branch is still the same and undoes the same. Only that first commit has another parent than the image of its own.
func (p *Plan) Keeps(tail []ledger.Pair) bool {
	pending, waiting, wanted := map[gitops.OID]bool{}, map[gitops.OID]bool{}, gitops.Set[gitops.OID]{}
	for _, t := range tail {
		pending[t.Inner], wanted[t.Inner] = true, true
		wanted.Add(t.Without...)
	}
	for _, l := range slices.Backward(p.Links) { // children before parents
		if waiting[l.Commit] = true; !wanted[l.Commit] {
			continue
		}
		if pending[l.Commit] == p.LeavesOut(l.Commit) {
			return false
		}
		wanted.Add(l.Parents...)
	}
	if slices.ContainsFunc(tail, func(t ledger.Pair) bool {
		return !waiting[t.Inner] || t.Aside || t.From != p.From || t.Inner == p.Chain[0] && !slices.Equal(t.Supersedes, p.Supersedes)
	}) {
		return false
	}
	chain, _ := p.newChain(tail[len(tail)-1].Inner)
	chain = slices.DeleteFunc(chain, p.LeavesOut)
	return len(chain) > 0 && chain[0] == p.Chain[0]
}

// After returns the links that are not pending yet, or none if all of them are dropped.
func (p *Plan) After(tail []ledger.Pair) []quarantine.Link {
	pending := gitops.SetOf(ledger.Inners(tail)...)
	var links []quarantine.Link
	fresh := false
	for _, l := range p.Links {
		if !pending[l.Commit] {
			links = append(links, l)
			fresh = fresh || !p.LeavesOut(l.Commit)
		}
	}
	if !fresh {
		return nil
	}
	return links
}

// ErrNotPending reports that a commit is not a pending commit of the line that lands.
var ErrNotPending = errors.New("not one of the pending commits")

// ErrAmbiguous reports that a name stands for more than one commit.
var ErrAmbiguous = errors.New("it names several commits, type more of its digits")

// leastDigits is the length of the shortest accepted abbreviation of an inner commit.
const leastDigits = 7

// Digits reports whether a name can be an abbreviation of an inner commit.
func Digits(name string) bool {
	return len(name) >= leastDigits && strings.Trim(strings.ToLower(name), "0123456789abcdef") == ""
}

// Abbreviates reports whether a name is an abbreviation of an inner commit.
func Abbreviates(name string, inner gitops.OID) bool {
	return Digits(name) && strings.HasPrefix(string(inner), strings.ToLower(name))
}

// Find returns the one waiting commit that a name stands for, and its outer commit if it has been built. The name is
// at least seven digits of the inner commit, or a revision that git resolves to the outer commit or a former one of it. revision is
// empty if git cannot resolve the name. The error wraps [ErrNotPending] or [ErrAmbiguous].
func (p *Plan) Find(name string, revision gitops.OID) (quarantine.Link, gitops.OID, error) {
	outer, revision := map[gitops.OID]gitops.OID{}, p.Ledger.Now(revision)
	for _, t := range p.Ledger.Tail {
		outer[t.Inner] = t.Outer
	}
	links := slices.DeleteFunc(slices.Clone(p.Links), func(l quarantine.Link) bool { return p.left[l.Commit] })
	for _, a := range p.Aside {
		links = append(links, a.Link)
	}
	var found []quarantine.Link
	for _, l := range links {
		o := outer[l.Commit]
		if o != "" && o == revision || Abbreviates(name, l.Commit) {
			found = append(found, l)
		}
	}
	if len(found) > 1 {
		return quarantine.Link{}, "", fmt.Errorf("commit %q: %w", gitops.Text(name), ErrAmbiguous)
	}
	if len(found) == 0 || p.Drops(found[0].Commit) {
		return quarantine.Link{}, "", fmt.Errorf("commit %q: %w", gitops.Text(name), ErrNotPending)
	}
	return found[0], outer[found[0].Commit], nil
}

// Target returns the inner commit at which a landing ends. It can be pending, new or landed. If found is set, an
// earlier cycle has resolved the name already. Otherwise the name is resolved as in [Plan.Find]. The error wraps
// [ErrNotPending] if no landing can end at that commit.
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
	if !p.Ledger.Has(found) && !p.Ends()[found] {
		return "", fmt.Errorf("commit %q: %w", gitops.Text(name), ErrNotPending)
	}
	return found, nil
}

// landedAs returns the landed inner commit with an abbreviation, or empty if there are none or several.
func (p *Plan) landedAs(name string) gitops.OID {
	found := slices.DeleteFunc(ledger.Inners(p.Ledger.Landed), func(id gitops.OID) bool { return !Abbreviates(name, id) })
	if len(found) != 1 {
		return ""
	}
	return found[0]
}
