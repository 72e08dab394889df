package history

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// LeftOut describes the commits that were left out when later ones landed.
type LeftOut struct {
	Tip     gitops.OID          // the inner commit to promote
	History []quarantine.Link   // the commits that Tip reaches, landed ones included, parents first
	Commits map[gitops.OID]bool // the commits left out, without dropped ones
	Held    map[gitops.OID]bool // see [Aside.Held]
	Landed  func(gitops.OID) bool
	Drops   func(gitops.OID) bool // means nothing for landed commits, see [Facts.Drops]
}

// Left is what the history of an inner commit has of commits that were left out.
type Left struct {
	// Earlier lists commits that Tip reaches, that were left out and that landed commits follow, parents first. Links can have them, too, if
	// a new merge also reaches them in another way.
	Earlier []Aside
	// Absent maps landed commits to those in their histories that are left out or dropped. It may have other commits, too.
	Absent map[gitops.OID][]gitops.OID
	// Line is the first-parent history of the newest landed commit there, oldest first. It begins with the oldest commit that is absent.
	Line []quarantine.Link
}

// Left returns the commits left out that landed commits follow, and what landed commits lack. A commit that the agent has gone back to is
// new again and is not set aside.
func (o LeftOut) Left() Left {
	aside, absent := o.aside()
	return Left{aside, absent, o.line(absent)}
}

// line returns the value of [Left.Line].
func (o LeftOut) line(absent absent) (line []quarantine.Link) {
	at, below := o.Tip, false
	for _, l := range slices.Backward(o.History) { // children before parents
		if l.Commit != at {
			continue
		}
		if below = below || o.Landed(at); below && len(absent[at]) > 0 {
			line = append(line, l)
		}
		if at = ""; len(l.Parents) > 0 {
			at = l.Parents[0]
		}
	}
	slices.Reverse(line)
	return line
}

// aside returns the values of [Left.Earlier] and [Left.Absent].
func (o LeftOut) aside() (aside []Aside, absent map[gitops.OID][]gitops.OID) {
	again, below, points := o.again(), map[gitops.OID]bool{}, map[gitops.OID]bool{o.Tip: true}
	brings, absent := extend(nil, o.History, func(id gitops.OID) bool { return !o.Landed(id) && (o.Commits[id] || o.Drops(id)) })
	for _, l := range slices.Backward(o.History) { // children before parents
		landed := o.Landed(l.Commit)
		for i, id := range l.Parents {
			below[id] = below[id] || landed || below[l.Commit]
			// Others are reached only as commits that a merge brings, which has not landed.
			points[id] = points[id] || landed || i == 0 && points[l.Commit]
		}
		if o.Commits[l.Commit] && below[l.Commit] && !again[l.Commit] {
			aside = append(aside, Aside{Link: l, Side: !points[l.Commit], Held: o.Held[l.Commit], Older: true, Brings: brings[l.Commit]})
		}
	}
	slices.Reverse(aside)
	return aside, absent
}

// again returns the commits that the agent has gone back to: those of its first-parent history since the newest landed commit there, and
// what they reach, without what that landed commit reaches. The changes of the latter are in no change since it.
func (o LeftOut) again() map[gitops.OID]bool {
	chain, again, before := map[gitops.OID]bool{o.Tip: true}, map[gitops.OID]bool{}, map[gitops.OID]bool{}
	for _, l := range slices.Backward(o.History) { // children before parents
		landed := o.Landed(l.Commit)
		if chain[l.Commit] && !landed && len(l.Parents) > 0 {
			chain[l.Parents[0]] = true
		}
		reaches := before[l.Commit] || chain[l.Commit] && landed
		again[l.Commit] = !landed && !reaches && (again[l.Commit] || chain[l.Commit] && o.Commits[l.Commit])
		for _, id := range l.Parents {
			before[id] = before[id] || reaches
			again[id] = again[id] || again[l.Commit]
		}
	}
	return again
}

// goBack sets behind. found is a landed commit, and the branch has another history than it when Chain[0] undoes Last.
func (p *Plan) goBack(ctx context.Context, inner Graph, found gitops.OID) error {
	if len(p.Line) == 0 {
		return nil
	}
	only, err := inner.Unreached(ctx, []gitops.OID{found}, []gitops.OID{p.Last.Inner})
	p.behind = map[gitops.OID]bool{}
	for _, id := range p.Absent[found] {
		if slices.Contains(only, id) {
			p.behind[id] = true
		}
	}
	return err
}

// setFirst sets [Aside.First]. A commit that only a merge brings comes with the merge.
func (p *Plan) setFirst() {
	before := p.Absent[p.found]
	if p.Since != p.found || p.Fork != "" || len(p.Supersedes) > 0 {
		before = nil // Chain[0] undoes the history that has them, or another one
	}
	for i, a := range p.Earlier {
		p.Earlier[i].First = !a.Held && !a.Side && slices.Contains(before, a.Commit)
	}
}

// first reports whether a commit is built before those of Chain.
func (f Facts) first(inner gitops.OID) bool {
	return slices.ContainsFunc(f.Earlier, func(a Aside) bool { return a.Commit == inner && a.First })
}

// setOnTop sets OnTop, and returns the commits of it that Chain[0] does not reach, newest first.
func (p *Plan) setOnTop(ctx context.Context, inner Graph) (undone []gitops.OID, err error) {
	var aside []gitops.OID
	for _, l := range p.Ledger.Landed {
		if l.Aside && !p.Ledger.Superseded(l.Outer) {
			aside = append(aside, l.Inner)
		}
	}
	if p.OnTop, err = beyond(ctx, inner, aside, p.Last.Inner); err == nil {
		undone, err = beyond(ctx, inner, p.OnTop, p.Chain[0])
	}
	slices.Reverse(undone)
	return undone, err
}

// beyond returns the commits that another one does not reach, in their order.
func beyond(ctx context.Context, inner Graph, commits []gitops.OID, other gitops.OID) ([]gitops.OID, error) {
	if len(commits) == 0 {
		return nil, nil
	}
	only, err := inner.Unreached(ctx, commits, []gitops.OID{other})
	return slices.DeleteFunc(slices.Clone(commits), func(id gitops.OID) bool { return !slices.Contains(only, id) }), err
}

// Postpones reports whether the new commits were all set aside, and the first one goes back behind landed commits. Such a commit would
// land with its own change, and would not undo the history that landed meanwhile, nor bring back the one before that. It waits until older
// commits, which were left out and are set aside before it, have landed or are dropped. Then it is the first of the chain.
func (p *Plan) Postpones() bool { return p.postpones }

// Postponed reports whether a pending commit waits for that.
func (p *Plan) Postponed(inner gitops.OID) bool { return p.postpones && !p.leftOut(inner) }

// cutFrom returns the links that only dropped merges reach, by their merges. all are the links with all their parents.
func (p *Plan) cutFrom(all []quarantine.Link) map[gitops.OID][]gitops.OID {
	known, cut := gitops.SetOf(quarantine.Commits(p.Links)...), map[gitops.OID][]gitops.OID{}
	for i, merge := range all {
		if len(merge.Parents) < 2 || !p.Drops(merge.Commit) {
			continue
		}
		wanted := gitops.SetOf(merge.Parents[1:]...)
		for _, l := range slices.Backward(all[:i]) { // children before parents
			if !wanted[l.Commit] || known[l.Commit] {
				continue
			}
			known[l.Commit], cut[merge.Commit] = true, append(cut[merge.Commit], l.Commit)
			wanted.Add(l.Parents...)
		}
		slices.Reverse(cut[merge.Commit])
	}
	return cut
}
