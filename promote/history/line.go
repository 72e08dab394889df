package history

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Source is the inner branch or commit from which a plan lands commits.
type Source struct {
	// From is the name of a line that the user promotes in the place of main, see [ledger.LineOf]. It is empty for main.
	From string
	// Main is the tip of main if From is set, or empty if there is no main.
	Main gitops.OID
}

// mergesRead bounds the new merges of which a plan finds the landed commits that they bring, since each needs a process.
const mergesRead = 100

// setLine sets Last and lost if commits of several lines have landed. If the line has lost landed commits, its changes count from the newest of these,
// and otherwise from found.
func (p *Plan) setLine(ctx context.Context, inner Graph) error {
	p.lined = p.From != "" || p.Ledger.HasLines() && !p.Brought[p.found]
	if !p.lined {
		p.Last = p.Ledger.LastAs(p.found)
		return nil
	}
	p.Last = p.Ledger.LastOn(p.found)
	own, err := p.own(ctx, inner)
	if err == nil {
		p.lost, err = beyond(ctx, inner, own, p.Tip)
	}
	if err == nil {
		p.lost, err = p.withoutForms(ctx, inner, p.lost, p.Tip)
	}
	for _, id := range slices.Backward(p.lost) {
		if image, _ := p.Ledger.Image(id); !image.Aside {
			p.Last = p.Ledger.LastOn(id)
			break
		}
	}
	return err
}

// own returns the landed inner commits that the line takes off the branch when it has lost them, oldest first: its own ones and, if it is not main,
// those that main has lost.
func (p *Plan) own(ctx context.Context, inner Graph) (own []gitops.OID, err error) {
	var main []gitops.OID
	for _, l := range p.Ledger.Landed {
		if !l.OffMain() && !p.Ledger.Superseded(l.Outer) {
			main = append(main, l.Inner)
		}
	}
	if p.From == "" {
		return main, nil
	}
	if p.Main != "" {
		main, err = beyond(ctx, inner, main, p.Main)
	}
	gone := gitops.SetOf(main...)
	for _, l := range p.Ledger.Landed {
		if gone[l.Inner] || l.OffMain() && l.From == p.From && !p.Ledger.Superseded(l.Outer) {
			own = append(own, l.Inner)
		}
	}
	return own, err
}

// stays reports whether a landed commit stays on the branch although the first new commit does not have it: another line has landed it, or a later
// commit has it.
func (p *Plan) stays(inner gitops.OID) bool { return p.lined && !slices.Contains(p.lost, inner) }

// setOff sets Off.
func (p *Plan) setOff(ctx context.Context, inner Graph) error {
	var superseded []gitops.OID
	for _, l := range p.Ledger.Landed {
		if p.lined && len(p.Chain) > 0 && p.Ledger.Superseded(l.Outer) {
			superseded = append(superseded, l.Inner)
		}
	}
	if len(superseded) == 0 {
		return nil
	}
	var left []gitops.OID
	for _, by := range []gitops.OID{p.Since, p.Chain[0]} {
		ids, err := inner.Unreached(ctx, superseded, []gitops.OID{by})
		if err != nil {
			return err
		}
		left = append(left, ids...)
	}
	lacks := gitops.SetOf(left...)
	p.Off = slices.DeleteFunc(superseded, func(id gitops.OID) bool { return lacks[id] })
	return nil
}

// setOffMain finds the new commits that main does not have.
func (p *Plan) setOffMain(ctx context.Context, inner Graph, links []quarantine.Link) error {
	if p.From == "" || len(links) == 0 {
		return nil
	}
	var main []gitops.OID
	if p.Main != "" {
		main = append(main, p.Main)
	}
	off, err := inner.Unreached(ctx, quarantine.Commits(links), main)
	p.offMain = gitops.SetOf(off...)
	return err
}

// OffMain reports whether main does not have a new commit of the line.
func (p *Plan) OffMain(inner gitops.OID) bool { return p.offMain[inner] }

// setMerged finds the landed and the synced commits that new merges bring, if commits of several lines have landed.
func (p *Plan) setMerged(ctx context.Context, inner Graph) error {
	p.merged = map[gitops.OID]Merged{}
	for _, l := range p.Links {
		if !p.lined || len(l.Parents) < 2 || len(p.merged) == mergesRead {
			continue
		}
		brought, err := inner.Unreached(ctx, l.Parents[1:], l.Parents[:1])
		if err != nil {
			return err
		}
		var m Merged
		for _, id := range slices.Backward(brought) {
			image, there := p.Ledger.Image(id)
			switch {
			case !there:
			case p.Ledger.Superseded(image.Outer) || slices.Contains(p.Supersedes, image.Outer):
				m.Off = append(m.Off, id)
			default:
				m.On = append(m.On, id)
			}
		}
		p.merged[l.Commit] = m
	}
	return nil
}

// Merged lists landed and synced inner commits that a new merge brings, oldest first.
type Merged struct {
	On  []gitops.OID // the branch has their changes before the merge, so that these are not the merge's
	Off []gitops.OID // the branch does not have their changes any more
}

// Merged returns what a new merge brings. It is empty if only commits of main have landed.
func (p *Plan) Merged(merge gitops.OID) Merged { return p.merged[merge] }

// Joins returns the landed commits of other lines that main has had: those that the newest commit of its first-parent history that is not new
// reaches, or its last landed commit. links are the new commits of main, and tip is its newest.
func Joins(ctx context.Context, l *ledger.Ledger, inner Graph, tip gitops.OID, links []quarantine.Link) (joined []gitops.OID, err error) {
	off := ledger.Inners(l.OffMain())
	if len(off) == 0 {
		return nil, nil
	}
	p := Plan{Facts: Facts{Ledger: l, Links: links}}
	_, found := p.newChain(tip)
	left, err := inner.Unreached(ctx, off, []gitops.OID{found, l.Last().Inner})
	return slices.DeleteFunc(off, func(id gitops.OID) bool { return slices.Contains(left, id) }), err
}
