package history

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Source is the inner branch or commit from which a plan lands commits.
type Source struct {
	// From is the name of a line that the user promotes in the place of main, see [ledger.LineOf]. It is empty for main.
	From string
	// Main is the newest commit of the branch main, if From is set. It is empty if the branch does not exist.
	Main gitops.OID
}

// SourceOf returns the source of a plan that promotes an inner branch or revision, of which tip is the commit. main is the tip of main, which is
// promoted if from is empty. A revision such as HEAD or @{-1} names another branch at another time, so its line is the commit alone.
func SourceOf(from string, tip, main gitops.OID) Source {
	line := ledger.LineOf(from)
	anyBranch := line == "HEAD" || strings.HasPrefix(line, "@") || strings.HasPrefix(line, ":")
	switch {
	case from == "" || tip == main && (anyBranch || line == ledger.LineOf(inner.Main)):
		return Source{}
	case anyBranch:
		line = string(tip)
	}
	return Source{From: line, Main: main}
}

// mergesRead bounds the new merges of which a plan finds the landed commits that they bring, since each needs a process.
const mergesRead = 100

// setLost sets lost if commits of several lines have landed.
func (p *Plan) setLost(ctx context.Context, inner Graph) error {
	p.lined = p.From != "" || p.Ledger.HasLines() && !p.Brought[p.found]
	if !p.lined {
		return nil
	}
	own, err := p.own(ctx, inner)
	if err == nil {
		p.lost, err = beyond(ctx, inner, own, p.Tip)
	}
	if err == nil {
		p.lost, err = p.withoutForms(ctx, inner, p.lost, p.Tip)
	}
	if err == nil {
		p.lost, err = p.withReached(ctx, inner, p.lost)
	}
	return err
}

// count sets the fields that describe what the new commits count from, and what they undo.
func (p *Plan) count(ctx context.Context) error {
	p.setLast()
	p.Since, p.Fork, p.behind = p.Last.Inner, "", nil
	p.Supersedes, p.Lost, p.Again, p.OnTop, p.Off = nil, nil, nil, nil, nil
	err := p.begin(ctx, p.inner, p.outer, p.all)
	if err == nil {
		err = errors.Join(p.setOff(ctx, p.inner), p.setMerged(ctx, p.inner))
	}
	return err
}

// setLast sets Last. If commits of several lines have landed, the changes of each count from found.
func (p *Plan) setLast() {
	if p.lined {
		p.Last = p.Ledger.LastOn(p.found)
	} else {
		p.Last = p.Ledger.LastAs(p.found)
	}
}

// beginLine sets the fields for the first new commit of a line. It undoes the landed commits that the line has lost.
func (p *Plan) beginLine(ctx context.Context, outer Graph) error {
	p.Since = p.found
	newestFirst := slices.Clone(p.lost)
	slices.Reverse(newestFirst)
	err := p.supersede(ctx, newestFirst, outer)
	p.OnTop = slices.DeleteFunc(slices.Clone(p.lost), func(id gitops.OID) bool {
		image, _ := p.Ledger.Image(id)
		return !slices.Contains(p.Supersedes, image.Outer) && !p.Ledger.Superseded(image.Outer)
	})
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
	p.gone = gitops.SetOf(main...)
	for _, l := range p.Ledger.Landed {
		if p.gone[l.Inner] || l.OffMain() && l.From == p.From && !p.Ledger.Superseded(l.Outer) {
			own = append(own, l.Inner)
		}
	}
	if err == nil && p.Main != "" {
		own, err = beyond(ctx, inner, own, p.Main)
	}
	return own, err
}

// withReached adds to lost commits what their histories have, and what the tip does not reach: landed commits of other lines, which stay on the branch
// if those still have them, and superseded ones that a lost commit has brought back.
func (p *Plan) withReached(ctx context.Context, inner Graph, lost []gitops.OID) ([]gitops.OID, error) {
	var more []gitops.OID
	all := gitops.SetOf(lost...)
	for _, l := range p.Ledger.Landed {
		if !all[l.Inner] && (l.OffMain() || p.Ledger.Superseded(l.Outer)) {
			more = append(more, l.Inner)
		}
	}
	more, err := beyond(ctx, inner, more, p.Tip)
	if err == nil && p.Main != "" {
		more, err = beyond(ctx, inner, more, p.Main)
	}
	if err != nil || len(lost) == 0 || len(more) == 0 {
		return lost, err
	}
	left, err := inner.Unreached(ctx, more, lost)
	for _, id := range more {
		if err != nil {
			return nil, err
		}
		if slices.Contains(left, id) {
			continue
		}
		image, _ := p.Ledger.Image(id)
		back := slices.DeleteFunc(slices.Clone(lost), func(by gitops.OID) bool { return !p.broughtBack(image, by) })
		if !p.Ledger.Superseded(image.Outer) {
			all[id] = true
		} else if len(back) > 0 {
			var not []gitops.OID
			not, err = inner.Unreached(ctx, []gitops.OID{id}, back)
			all[id] = !slices.Contains(not, id)
		}
	}
	lost = ledger.Inners(p.Ledger.Landed)
	return slices.DeleteFunc(lost, func(id gitops.OID) bool { return !all[id] }), err
}

// broughtBack reports whether an inner commit landed after a landed one was superseded. If it reaches that one, it has brought its change back.
func (p *Plan) broughtBack(superseded ledger.Pair, by gitops.OID) bool {
	for _, l := range slices.Backward(p.Ledger.Landed) {
		if slices.Contains(l.Supersedes, superseded.Outer) {
			return false
		}
		if l.Inner == by {
			return true
		}
	}
	return false
}

// withoutForms returns undone commits without those of which another commit reaches another form.
func (p *Plan) withoutForms(ctx context.Context, inner Graph, undone []gitops.OID, by gitops.OID) ([]gitops.OID, error) {
	forms := p.Ledger.OtherForms(undone)
	if len(forms) == 0 {
		return undone, nil
	}
	gone, err := inner.Unreached(ctx, ledger.Inners(forms), []gitops.OID{by})
	kept := gitops.Set[gitops.OID]{}
	for _, form := range forms {
		kept[form.Outer] = kept[form.Outer] || !slices.Contains(gone, form.Inner)
	}
	return slices.DeleteFunc(undone, func(id gitops.OID) bool {
		image, landed := p.Ledger.Image(id)
		return landed && kept[image.Outer]
	}), err
}

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

// OffMain counts the landed commits of this plan that main does not have.
func (p *Plan) OffMain(landed []ledger.Pair) (n int) {
	for _, l := range landed {
		if p.offMain[l.Inner] {
			n++
		}
	}
	return n
}

// Joined reports whether main has a new commit of another line.
func (p *Plan) Joined(inner gitops.OID) bool { return p.From != "" && !p.offMain[inner] }

// setMerged finds the landed and the synced commits that new merges bring, if commits of several lines have landed.
func (p *Plan) setMerged(ctx context.Context, inner Graph) error {
	p.merged = map[gitops.OID]Merged{}
	for _, l := range p.Links {
		if !p.lined || len(p.Chain) == 0 || len(l.Parents) < 2 || len(p.merged) == mergesRead {
			continue
		}
		brought, err := inner.Unreached(ctx, l.Parents[1:], l.Parents[:1])
		if err != nil {
			return err
		}
		var m Merged
		synced := false
		for _, id := range slices.Backward(brought) {
			image, there := p.Ledger.Image(id)
			switch synced = synced || image.Synced; {
			case !there:
			case !image.Synced && (p.Ledger.Superseded(image.Outer) || slices.Contains(p.Supersedes, image.Outer)):
				m.Off = append(m.Off, id)
			default:
				m.On = append(m.On, id)
			}
		}
		switch { // a synced commit can have the changes of commits that this plan takes off, or brings back
		case synced && l.Commit == p.Chain[0]:
			m.Off = append(m.Off, p.Off...)
		case synced:
			m.Off = append(m.Off, p.OnTop...)
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
