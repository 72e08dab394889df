package replay

import (
	"context"
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
)

// BadName is a word that cannot be the name of a branch.
type BadName struct{ Name string }

func (e *BadName) Error() string {
	return fmt.Sprintf("%q cannot be the name of a branch", gitops.Text(e.Name))
}

// Taken reports a branch that cannot be moved to the commits.
type Taken struct {
	Branch string // short name
	Why    string
}

func (e *Taken) Error() string { return fmt.Sprintf("the branch %s %s", gitops.Text(e.Branch), e.Why) }

// target is the branch that a replay creates or moves.
type target struct {
	ref string
	old gitops.OID
}

// branchTarget checks that a branch can be created, or moved forward: it may not be checked out, since its files would stay behind.
func branchTarget(ctx context.Context, r *gitops.Repository, name string) (t target, err error) {
	if _, err := r.Output(ctx, "check-ref-format", "--branch", name); err != nil {
		if gitops.Status(err) > 0 {
			return t, &BadName{name}
		}
		return t, err
	}
	t.ref = "refs/heads/" + name
	if t.old, err = r.Ref(ctx, t.ref); err != nil {
		return t, err
	}
	switch at, err := r.SymbolicRef(ctx, t.ref); {
	case err != nil:
		return t, err
	case at != "":
		return t, &Taken{name, "is a symbolic ref"}
	}
	here, err := r.Head(ctx)
	if err != nil {
		return t, err
	}
	elsewhere, err := r.Elsewhere(ctx, t.ref)
	if err == nil && (here.Branch == t.ref || len(elsewhere) > 0) {
		err = &Taken{name, "is checked out"}
	}
	return t, err
}

// Run makes the commits of a run again. If a branch is given, and all commits could be made with the trees in the record, Run moves the branch to
// the last of them. Only one process at a time may do this in a repository. A dry run only checks the request, and its result is empty.
func Run(ctx context.Context, r Request, branch string) (result Result, err error) {
	var t target
	if branch != "" {
		if t, err = branchTarget(ctx, r.Repo, branch); err != nil {
			return result, err
		}
	}
	if r.Repo.Dry {
		return result, nil
	}
	w, err := openWorkshop(ctx, r.Repo)
	if err != nil {
		return result, err
	}
	defer func() {
		if closed := w.Close(); err == nil {
			err = closed
		}
	}()
	if result, err = w.Make(ctx, r); err != nil || branch == "" || result.Tip() == "" || result.Tip() == t.old {
		return result, err
	}
	if t.old != "" && !w.Contains(ctx, t.old) {
		return result, &Taken{branch, "has commits that the result does not contain"}
	}
	return result, w.Publish(ctx, t.ref, t.old)
}
