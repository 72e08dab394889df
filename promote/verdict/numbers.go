package verdict

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// number gives a number to each commit of a list. If the new numbers cannot be stored, new commits have the number 0.
func (q *request) number(list []Reviewable) error {
	n, err := ledger.ReadNumbers(q.e.Dir())
	if err != nil {
		return err
	}
	var ids []gitops.OID
	for i := range list {
		ids = append(ids, list[i].Inner)
		list[i].Number = n.Of[list[i].Inner]
	}
	if !n.Give(ids) || q.e.Repo.Dry || n.Write(q.e.Dir()) != nil {
		return nil
	}
	for i := range list {
		list[i].Number = n.Of[list[i].Inner]
	}
	return nil
}

// numberOf returns the number that a name stands for, or 0. Names of seven digits or more are object names.
func numberOf(name string) int {
	const most = 6
	n, err := strconv.Atoi(name)
	if err != nil || len(name) > most || strings.TrimLeft(name, "+-0") != name {
		return 0
	}
	return n
}

// numbered returns the inner commit with a number, or empty if the name is not the number of a commit that waits or was left out. revision is
// the outer commit that git resolves the name to, or empty. If revision is another pending commit, the error wraps [history.ErrAmbiguous].
func (q *request) numbered(name string, revision gitops.OID) (gitops.OID, error) {
	number := numberOf(name)
	if number == 0 {
		return "", nil
	}
	n, err := ledger.ReadNumbers(q.e.Dir())
	inner := n.Commit(number)
	if err != nil || inner == "" || !q.there(inner) {
		return "", err
	}
	for _, t := range q.Ledger.Tail {
		if t.Outer == revision && t.Inner != inner {
			return "", fmt.Errorf("%q is the number of %.12s and a name of %.12s: %w", name, inner, revision, history.ErrAmbiguous)
		}
	}
	return inner, nil
}

// Find returns the commit of a list that a name stands for. A name is a number, a revision of a built commit or of a former one in its place,
// or at least seven digits of an inner commit. The error wraps [history.ErrNotPending] if the name stands for no commit, and
// [history.ErrAmbiguous] if it stands for two. The error is a [*ReplacedError] if another commit is in the place of the named one.
func Find(ctx context.Context, e *promote.Engine, list []Reviewable, name string) (Reviewable, error) {
	revision, _ := e.Repo.Commit(ctx, name)
	number := numberOf(name)
	var found []Reviewable
	for _, r := range list {
		if revision != "" && r.Commit == revision || number != 0 && r.Number == number || history.Abbreviates(name, r.Inner) {
			found = append(found, r)
		}
	}
	if len(found) == 0 && revision != "" {
		l, err := readLedger(ctx, e)
		if err != nil {
			return Reviewable{}, err
		}
		former := l.Former(revision)
		if i := slices.IndexFunc(list, func(r Reviewable) bool { return r.Inner == former }); i >= 0 {
			found = list[i : i+1]
		}
	}
	switch len(found) {
	case 0:
		return Reviewable{}, replaced(ctx, e, list, name, revision)
	case 1:
		return found[0], nil
	}
	return Reviewable{}, fmt.Errorf("commit %q: %w", gitops.Text(name), history.ErrAmbiguous)
}
