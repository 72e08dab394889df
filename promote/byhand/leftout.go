package byhand

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/decision"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Line is the agent's history.
type Line struct {
	Inspector *quarantine.Inspector // of the quarantine
	Tip       gitops.OID            // the inner commit that was promoted last
	Links     []quarantine.Link     // the commits that Tip reaches and that have not landed
}

// LeftOut returns the commits that do not land by themselves, or no longer as they were, and that the branch's tip reaches all the
// same: undone, rejected, dropped and former pending ones, oldest first. ops is the newest operation.
func (b Branch) LeftOut(ctx context.Context, d ledger.Decisions, ops gitops.OID, line func() (Line, error)) (taken Taken, err error) {
	if b.still() {
		return taken, nil
	}
	all, err := b.Ledger.Formers()
	if err != nil {
		return taken, err
	}
	var chain operation.Chain
	inspector := quarantine.Inspect(ctx, b.Repo.Git)
	defer inspector.Close()
	if b.decided(d) {
		if chain, err = operation.Read(ctx, inspector, ops); err != nil {
			return taken, err
		}
	}
	for _, o := range chain {
		all = append(all, o.Landed...)
	}
	if taken.Pairs, err = b.reached(ctx, b.open(all)); err != nil || len(taken.Pairs) == 0 {
		return taken, err
	}
	l, err := line()
	if err != nil {
		return taken, err
	}
	last := b.Ledger.Last().Inner
	taken.moveNewest(func(p ledger.Pair) bool { return l.leadsTo(ctx, p.Inner, last) })
	taken.Notes, err = notesOf(ctx, inspector, chain, taken.Pairs)
	return taken, err
}

// decided reports whether there may be undone commits: the user has decided about a commit that has not landed.
func (b Branch) decided(d ledger.Decisions) bool {
	return len(d.Dropped) > 0 || slices.ContainsFunc(d.Reviewed, func(r ledger.Reviewed) bool { return r.Word != review.Seen && !b.Ledger.Has(r.Inner) })
}

// open returns the pairs that have not landed and do not wait, the last of each outer commit.
func (b Branch) open(all []ledger.Pair) (open []ledger.Pair) {
	seen := gitops.SetOf(ledger.Outers(b.Ledger.Tail)...)
	for _, p := range slices.Backward(all) {
		if !seen[p.Outer] && !b.Ledger.Has(p.Inner) && !b.Ledger.HasOuter(p.Outer) {
			open = append(open, p)
		}
		seen[p.Outer] = true
	}
	return open
}

// reached returns the pairs whose outer commit the branch's tip reaches, oldest first, one for each inner commit.
func (b Branch) reached(ctx context.Context, pairs []ledger.Pair) (reached []ledger.Pair, err error) {
	there, err := b.Repo.Present(ctx, ledger.Outers(pairs))
	if err != nil || len(there) == 0 {
		return nil, err
	}
	left, err := b.Repo.Unreached(ctx, there, []gitops.OID{b.Tip})
	if err != nil {
		return nil, err
	}
	outer := slices.DeleteFunc(there, func(id gitops.OID) bool { return slices.Contains(left, id) })
	if len(outer) == 0 {
		return nil, nil
	}
	order, err := b.Repo.Unreached(ctx, outer, []gitops.OID{b.Ledger.Base.Outer}) // children before parents
	for _, id := range slices.Backward(order) {
		i := slices.IndexFunc(pairs, func(p ledger.Pair) bool { return p.Outer == id })
		if i >= 0 && slices.Contains(outer, id) && !slices.ContainsFunc(reached, func(p ledger.Pair) bool { return p.Inner == pairs[i].Inner }) {
			reached = append(reached, pairs[i])
		}
	}
	return reached, err
}

// followed bounds the number of commits between a rewritten commit and the last landed one.
const followed = 1000

// leadsTo reports whether the next commits of the agent count from a commit: it is in the first-parent history of the
// agent's newest commit. A commit that the agent has rewritten since follows the last landed one in its own history.
func (l Line) leadsTo(ctx context.Context, inner, last gitops.OID) bool {
	parents := map[gitops.OID]gitops.OID{}
	for _, link := range l.Links {
		parents[link.Commit] = decision.FirstParent(link)
	}
	if _, there := parents[inner]; there {
		for at := l.Tip; at != ""; at = parents[at] {
			if at == inner {
				return true
			}
		}
		return false
	}
	for range followed {
		if inner == last {
			return true
		}
		c, err := l.Inspector.Commit(ctx, inner)
		if err != nil || len(c.Parents) == 0 {
			return false
		}
		inner = c.Parents[0]
	}
	return false
}

// Notes are texts of notes, by ref and commit.
type Notes map[string]map[gitops.OID]string

// notesOf returns the notes that undone commits had before their undo.
func notesOf(ctx context.Context, inspector *quarantine.Inspector, chain operation.Chain, pairs []ledger.Pair) (Notes, error) {
	notes := Notes{}
	for _, o := range chain {
		for _, u := range chain.UndoOf(o).Notes {
			for _, p := range o.Landed {
				if u.Old == "" || !slices.ContainsFunc(pairs, func(x ledger.Pair) bool { return x.Outer == p.Outer }) {
					continue
				}
				text, err := inspector.NoteOf(ctx, u.Old, p.Outer)
				if err != nil {
					return nil, err
				}
				if notes[u.Ref] == nil {
					notes[u.Ref] = map[gitops.OID]string{}
				}
				if len(text) > 0 {
					notes[u.Ref][p.Outer] = string(text)
				}
			}
		}
	}
	return notes, nil
}
