package verdict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// ReplacedError reports that the agent has replaced the commit that a name stands for, for example with git commit --amend or git rebase.
type ReplacedError struct {
	Name string // a number, or a quoted name
	By   string // a name of the commit that is in its place: its number, or else its abbreviated id
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("commit %s was replaced by %s: %s", e.Name, e.By, history.ErrNotPending)
}

func (e *ReplacedError) Unwrap() error { return history.ErrNotPending }

// LandedError reports that a named commit is a rebased form of a landed one, so that nothing of it lands again.
type LandedError struct {
	Name string     // a number, or a quoted name
	As   gitops.OID // the landed commit
}

func (e *LandedError) Error() string {
	return fmt.Sprintf("commit %s has landed before it was rebased, as %.12s: %s", e.Name, e.As, history.ErrNotPending)
}

func (e *LandedError) Unwrap() error { return history.ErrNotPending }

// named is find, with a [*ReplacedError] for a commit that another one has replaced. It gives numbers to the commits if the name stands for none:
// the user may type a number before a review lists it.
func (q *request) named(ctx context.Context, name string) (gitops.OID, error) {
	id, err := q.find(ctx, name)
	if !errors.Is(err, history.ErrNotPending) {
		return id, err
	}
	list, failed := q.list(ctx)
	if failed != nil {
		return "", failed
	}
	if id, err = q.find(ctx, name); !errors.Is(err, history.ErrNotPending) {
		return id, err
	}
	revision, _ := q.e.Repo.Commit(ctx, name)
	return "", q.replaced(ctx, list, name, revision)
}

// replaced returns the error for a name that is not in a list. revision is the outer commit that git resolves the name to, or empty.
func replaced(ctx context.Context, e *promote.Engine, list []Reviewable, name string, revision gitops.OID) error {
	q, err := open(ctx, e, Request{})
	if err != nil {
		return err
	}
	defer q.Close()
	return q.replaced(ctx, list, name, revision)
}

func (q *request) replaced(ctx context.Context, list []Reviewable, name string, revision gitops.OID) error {
	n, err := ledger.ReadNumbers(q.e.Dir())
	if err != nil {
		return err
	}
	shown := gitops.Text(name).String()
	if numberOf(name) == 0 {
		shown = fmt.Sprintf("%q", gitops.Text(name))
	}
	inner := q.formerly(n, name, revision)
	if q.Ledger.IsRebased(inner) {
		image, _ := q.Ledger.Image(inner)
		return &LandedError{shown, image.Outer}
	}
	if inner != "" && !q.Ledger.Has(inner) && !q.there(inner) {
		r, err := q.successor(ctx, list, n, inner)
		if err != nil {
			return err
		}
		if r != nil {
			return &ReplacedError{Name: shown, By: r.handle()}
		}
	}
	return fmt.Errorf("commit %q: %w", gitops.Text(name), history.ErrNotPending)
}

// formerly returns the one inner commit that a name stood for: its number, a revision of the outer commit, or at least seven digits of the
// inner one. It returns an empty string if that is not known.
func (q *request) formerly(n ledger.Numbers, name string, revision gitops.OID) gitops.OID {
	if number := numberOf(name); number != 0 {
		return n.Commit(number)
	}
	found := map[gitops.OID]bool{}
	if former := q.Ledger.Former(revision); former != "" {
		found[former] = true
	}
	for _, r := range q.Decisions.Reviewed {
		if revision != "" && r.Commit == revision || history.Abbreviates(name, r.Inner) {
			found[r.Inner] = true
		}
	}
	for _, id := range slices.AppendSeq(q.Ledger.Rebased(), maps.Keys(n.Of)) {
		if history.Abbreviates(name, id) {
			found[id] = true
		}
	}
	if ids := slices.Collect(maps.Keys(found)); len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// successor returns the commit of a list that is in the place of an inner commit, or nil. The list pairs commits only with those that had a
// verdict or were seen. Others are compared here, with the commits that are newer by their numbers.
func (q *request) successor(ctx context.Context, list []Reviewable, n ledger.Numbers, inner gitops.OID) (*Reviewable, error) {
	if i := slices.IndexFunc(list, func(r Reviewable) bool { return r.of == inner }); i >= 0 {
		return &list[i], nil
	}
	there, err := q.Inside.Quarantine.Present(ctx, []gitops.OID{inner})
	if err != nil || len(there) == 0 { // pruned
		return nil, err
	}
	gone, err := q.Inside.About(ctx, inner)
	if err != nil {
		return nil, err
	}
	newer := slices.DeleteFunc(slices.Clone(list), func(r Reviewable) bool { return !r.later(n.Of[inner]) })
	patches, err := q.innerPatches(ctx, gone, newer)
	for _, same := range likenesses(patches, n) {
		if i := slices.IndexFunc(newer, func(r Reviewable) bool { return same(gone[0], r) }); i >= 0 {
			return &newer[i], err
		}
	}
	return nil, err
}

// handle returns a name of a commit that the user can type: its number, or else its abbreviated id.
func (r *Reviewable) handle() string {
	if r.Number == 0 {
		return fmt.Sprintf("%.12s", cmp.Or(r.Commit, r.Inner))
	}
	return fmt.Sprint(r.Number)
}
