package verdict

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// lastForms returns those of the gone commits with verdicts that commits of a list can replace, in the order of their numbers, each in one form: a
// commit that the agent has amended twice is gone in two. This is the last form that the user has given a verdict or read in full, so that a
// comparison shows all that the user has not read.
func (q *request) lastForms(ctx context.Context, gone []ledger.Reviewed, list []Reviewable, likenesses []likeness, n ledger.Numbers) ([]ledger.Reviewed, error) {
	gone = slices.DeleteFunc(slices.Clone(gone), func(g ledger.Reviewed) bool {
		return !slices.ContainsFunc(likenesses, func(same likeness) bool {
			return slices.ContainsFunc(list, func(r Reviewable) bool { return same(g, r) })
		})
	})
	number := func(r ledger.Reviewed) int { return cmp.Or(n.Of[r.Inner], math.MaxInt) }
	slices.SortStableFunc(gone, func(a, b ledger.Reviewed) int { return cmp.Compare(number(a), number(b)) })
	if len(gone) < 2 {
		return gone, nil
	}
	files, err := q.filesOf(ctx, gone)
	if err != nil {
		return nil, err
	}
	out, later := map[gitops.OID]bool{}, map[gitops.OID]bool{} // earlier forms, and those that replace one
	for _, same := range likenesses {
		for i := range gone {
			r := &gone[i]
			form := Reviewable{Inner: r.Inner, Subject: r.Subject, Number: n.Of[r.Inner], Files: files[r.Commit], written: r.Written}
			before := func(g ledger.Reviewed) bool { return !out[g.Inner] && same(g, form) }
			if out[r.Inner] || later[r.Inner] || !slices.ContainsFunc(gone[:i], before) {
				continue
			}
			below, known := q.ancestors(ctx, r.Inner)
			at := slices.IndexFunc(gone[:i], func(g ledger.Reviewed) bool { return before(g) && !below[g.Inner] })
			if !known || at < 0 {
				continue
			}
			g := &gone[at]
			form.looked = both(g.Paths, r.Paths)
			if r.Word != review.Seen || form.Files != nil && len(form.Unseen()) == 0 {
				r.Paths, out[g.Inner], later[r.Inner] = form.looked, true, true
			} else {
				g.Paths, out[r.Inner] = form.looked, true
			}
		}
	}
	return slices.DeleteFunc(gone, func(r ledger.Reviewed) bool { return out[r.Inner] }), ctx.Err()
}

// filesOf returns the changed files of the gone commits without a verdict that the user's git gc has not removed.
func (q *request) filesOf(ctx context.Context, gone []ledger.Reviewed) (map[gitops.OID][]gitops.Stat, error) {
	var seen []gitops.OID
	for _, r := range gone {
		if r.Word == review.Seen {
			seen = append(seen, r.Commit)
		}
	}
	there, err := q.e.Repo.Present(ctx, seen)
	if err != nil {
		return nil, err
	}
	return q.e.Repo.Bare().AllStats(ctx, there)
}

// ancestors returns the ancestors of an inner commit that have not landed. They are not known if the agent's git gc has removed one.
func (q *request) ancestors(ctx context.Context, inner gitops.OID) (found map[gitops.OID]bool, known bool) {
	found = map[gitops.OID]bool{}
	for todo := []gitops.OID{inner}; len(todo) > 0; {
		c, err := q.Inside.Inspector.Commit(ctx, todo[len(todo)-1])
		if err != nil {
			return nil, false
		}
		todo = todo[:len(todo)-1]
		for _, p := range c.Parents {
			if !found[p] && !q.Ledger.Has(p) {
				found[p], todo = true, append(todo, p)
			}
		}
	}
	return found, true
}
