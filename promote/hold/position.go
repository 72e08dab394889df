// Package hold describes why commits wait, for causes that need no engine to be described.
package hold

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// Error is a hold that ends a command.
type Error struct{ Hold ledger.Hold }

func (e *Error) Error() string { return fmt.Sprintf("held (%s): %s", e.Hold.Reason, e.Hold.Message) }

// IndexLocked returns the hold for an index that another git command has locked.
func IndexLocked(gitDir string) ledger.Hold {
	return ledger.Hold{Reason: ledger.IndexLocked, Message: "another git command holds the index lock; if none runs, it is left over from a crash",
		Next: []string{"rm " + gitops.Pasteable(gitDir+"/index.lock")}}
}

// WithLock adds the hold for a locked index to holds that keep a cycle from trying to land. Without them, the landing meets the lock itself.
func WithLock(gitDir string, holds []ledger.Hold) []ledger.Hold {
	if _, err := os.Lstat(gitDir + "/index.lock"); err != nil {
		return holds
	}
	return append(holds, IndexLocked(gitDir))
}

// Positions returns the holds that follow from the user's HEAD and branch, in the order of the reasons: an operation
// is in progress, the airlock's branch is deleted, another branch is checked out, or HEAD is detached. tip is the
// outer branch's commit, or empty if the branch is deleted.
func Positions(ctx context.Context, repo *gitops.Repository, r airlock.Record, tip, promoted gitops.OID) (holds []ledger.Hold, err error) {
	branch := r.BranchName()
	if op := repo.Operation(); op != "" {
		holds = append(holds, ledger.Hold{Reason: ledger.OperationInProgress,
			Message: words.Indefinite(op) + " is in progress; commits land when it is done", Next: operationNext(repo, op)})
	}
	there, err := repo.Branch(ctx)
	if err != nil {
		return nil, err
	}
	if tip == "" && Renamed(ctx, repo, r.Branch) == there && there != "" {
		now := gitops.Text(strings.TrimPrefix(there, "refs/heads/"))
		return append(holds, ledger.Hold{Reason: ledger.BranchDeleted, Message: fmt.Sprintf("branch %s was renamed to %s; commits land on %s", branch, now, branch),
			Next: []string{"git branch -m " + gitops.Pasteable(now) + " " + gitops.Pasteable(branch)}}), nil
	}
	if tip == "" {
		holds = append(holds, ledger.Hold{Reason: ledger.BranchDeleted, Message: fmt.Sprintf("branch %s does not exist any more", branch),
			Next: []string{"git branch " + gitops.Pasteable(branch) + " " + string(promoted)}})
	}
	tops, err := repo.Elsewhere(ctx, r.Branch)
	if err != nil {
		return nil, err
	}
	back := append(leave(tops), "git checkout "+gitops.Pasteable(branch))
	switch there {
	case r.Branch:
		alias, err := symbolic(ctx, repo, r)
		return append(append(holds, alias...), elsewhere(tops, r)...), err
	case "":
		return append(holds, ledger.Hold{Reason: ledger.DetachedHead, Message: fmt.Sprintf("HEAD is detached; commits land on %s", branch), Next: back}), nil
	}
	return append(holds, ledger.Hold{Reason: ledger.BranchSwitched, Next: back,
		Message: fmt.Sprintf("%s is checked out; commits land on %s", gitops.Text(strings.TrimPrefix(there, "refs/heads/")), branch)}), nil
}

// renamesRead bounds the entries of a reflog that are searched for a rename.
const renamesRead = "--max-count=1000"

// Renamed returns the checked-out branch if the user has given a branch its name with "git branch -m", and empty otherwise. Git notes that in
// the reflog, which it renames with the branch. That a branch has the same commits would not be enough: it may be the one into which the user
// has merged them before deleting the other.
func Renamed(ctx context.Context, repo *gitops.Repository, branch string) string {
	there, err := repo.Branch(ctx)
	if err != nil || there == "" || there == branch {
		return ""
	}
	moves, _ := repo.Output(ctx, "log", "--walk-reflogs", renamesRead, "--format=%gs", "--no-show-signature", there, "--") // no reflog, no rename
	for move := range strings.Lines(moves) {
		if strings.HasPrefix(move, "Branch: renamed "+branch+" to ") {
			return there
		}
	}
	return ""
}

// symbolic returns a hold if the user has made the branch a symbolic ref. A landing would replace it by a branch.
func symbolic(ctx context.Context, repo *gitops.Repository, r airlock.Record) ([]ledger.Hold, error) {
	target, err := repo.SymbolicRef(ctx, r.Branch)
	if err != nil || target == "" {
		return nil, err
	}
	name := gitops.Pasteable(r.Branch)
	return []ledger.Hold{{Reason: ledger.BranchSwitched, Next: []string{"git update-ref --no-deref " + name + " " + name},
		Message: fmt.Sprintf("%s is a symbolic ref to %s, and commits cannot land on it", r.BranchName(), gitops.Text(target))}}, nil
}

// elsewhere returns a hold if other worktrees also have the branch checked out. A landing here would leave their
// index and files behind, and the next commit there would undo the landing.
func elsewhere(tops []string, r airlock.Record) []ledger.Hold {
	if len(tops) == 0 {
		return nil
	}
	return []ledger.Hold{{Reason: ledger.BranchSwitched, Next: leave(tops),
		Message: fmt.Sprintf("%s is checked out in %s as well", r.BranchName(), gitops.Text(tops[0]))}}
}

// leave returns the commands that take other worktrees off their branch. Git checks out a branch in one worktree only.
func leave(tops []string) (next []string) {
	for _, top := range tops {
		next = append(next, "git -C "+gitops.Pasteable(top)+" checkout --detach")
	}
	return next
}

// DetachedError reports that HEAD is detached because the user has not finished an operation. Git itself creates no branch until then.
type DetachedError struct {
	Operation string
	next      []string
}

func (e *DetachedError) Error() string {
	return fmt.Sprintf("%v: %s is in progress", gitops.ErrDetached, words.Indefinite(e.Operation))
}

// Unwrap returns the error of a detached HEAD without an operation.
func (e *DetachedError) Unwrap() error { return gitops.ErrDetached }

// Next returns the commands that end the operation.
func (e *DetachedError) Next() []string { return e.next }

// Detached returns the error of a command that needs a branch while HEAD is detached.
func Detached(repo *gitops.Repository) error {
	if op := repo.Operation(); op != "" {
		return &DetachedError{op, operationNext(repo, op)}
	}
	return gitops.ErrDetached
}

// operationNext returns the commands that end an operation.
func operationNext(repo *gitops.Repository, op string) []string {
	switch {
	case op == "bisect":
		return []string{"git bisect reset"}
	case op == "rebase" && !named(repo):
		return []string{"git rebase --quit"}
	}
	return []string{"git " + op + " --continue", "git " + op + " --abort"}
}

// named reports whether git has stored which branch a rebase is of. If a rebase fails before that, git can neither continue nor abort it.
func named(repo *gitops.Repository) bool {
	return slices.ContainsFunc([]string{"rebase-merge", "rebase-apply"}, func(dir string) bool {
		_, err := os.Lstat(filepath.Join(repo.GitDir, dir, "head-name"))
		return err == nil
	})
}

// RefLocked returns the hold for the lock file of a ref or of the file that stores refs.
func RefLocked(e *gitops.LockedError) ledger.Hold {
	return ledger.Hold{Reason: ledger.IndexLocked, Message: e.Error(), Next: []string{"rm " + gitops.Pasteable(e.Lock)}}
}

// CommandAtWork returns the hold for a git command that a landing would make fail half-way.
func CommandAtWork(c *land.CommandError) ledger.Hold {
	return ledger.Hold{Reason: ledger.IndexLocked, Message: fmt.Sprintf("git %s runs here as process %d; commits land when it is done", c.Subcommand, c.PID),
		Next: []string{fmt.Sprintf("ps -o pid,stat,etime,args -p %d  # is it waiting for you?", c.PID)}}
}
