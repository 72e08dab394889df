package replay

import (
	"context"
	"errors"
	"io"

	"github.com/git-airlock/git-airlock/gitops"
)

// interdiffLimit bounds the bytes of an interdiff.
const interdiffLimit = 1 << 20

// Interdiff writes the difference from the landed files of run a to those of run b, escaped. First it makes the commits of a again on the commit
// before b, so that an older base of a makes no difference. The error is [gitops.ErrLargePatch] if the output is cut, and a [*Lacking] if
// commits are missing. Only one process at a time may do this in a repository.
func Interdiff(ctx context.Context, a, b Request, out io.Writer, colour bool) (err error) {
	w, err := openWorkshop(ctx, b.Repo)
	if err != nil {
		return err
	}
	defer func() {
		if closed := w.Close(); err == nil {
			err = closed
		}
	}()
	b.Onto, b.Committer, a.Committer = "", nobody, nobody
	second, err := w.Make(ctx, b)
	if err != nil {
		return err
	}
	a.Onto = second.Onto
	first, err := w.Make(ctx, a)
	if err != nil {
		return err
	}
	var trees [2]gitops.OID
	for i, r := range []Result{first, second} {
		if trees[i], err = w.landedTree(ctx, r, first.Onto); err != nil {
			return err
		}
	}
	return w.bridge.ShowTrees(ctx, out, colour, interdiffLimit, trees[0], trees[1])
}

// nobody is the committer of commits that nobody sees.
const nobody = "nobody <nobody@localhost>"

// landedTree returns the tree after a run: that of its last commit, or of the commit before it.
func (w *workshop) landedTree(ctx context.Context, r Result, otherwise gitops.OID) (gitops.OID, error) {
	n := len(r.Commits)
	switch {
	case n > 0 && r.State() == Conflict:
		return "", errors.New("the changes of one run conflict with the commit before the other run")
	case n > 0:
		return r.Commits[n-1].Tree, nil
	case r.Onto != "":
		otherwise = r.Onto
	}
	if otherwise == "" {
		return gitops.HashObject(w.repo.Format, "tree", nil), nil
	}
	c, err := w.across.Commit(ctx, otherwise)
	return c.Tree, err
}
