package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/build"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/teams"
	"github.com/git-airlock/git-airlock/words"
)

// Positions returns the holds that follow from the user's HEAD and branch, in the order of the reasons: an operation
// is in progress, the airlock's branch is deleted, another branch is checked out, or HEAD is detached. tip is the
// outer branch's commit, or empty if the branch is deleted.
func Positions(ctx context.Context, repo *gitops.Repository, r airlock.Record, tip, promoted gitops.OID) (holds []ledger.Hold, err error) {
	branch := r.BranchName()
	if op := repo.Operation(); op != "" {
		holds = append(holds, ledger.Hold{Reason: ledger.OperationInProgress,
			Message: fmt.Sprintf("a %s is in progress; commits land when it is done", op), Next: operationNext(op)})
	}
	back := []string{"git checkout " + gitops.Pasteable(branch)}
	if tip == "" {
		holds = append(holds, ledger.Hold{Reason: ledger.BranchDeleted, Message: fmt.Sprintf("branch %s does not exist any more", branch),
			Next: []string{"git branch " + gitops.Pasteable(branch) + " " + string(promoted)}})
	}
	there, err := repo.Branch(ctx)
	if err != nil {
		return nil, err
	}
	switch there {
	case r.Branch:
		alias, err := symbolic(ctx, repo, r)
		if err != nil {
			return nil, err
		}
		twice, err := elsewhere(ctx, repo, r)
		return append(append(holds, alias...), twice...), err
	case "":
		return append(holds, ledger.Hold{Reason: ledger.DetachedHead, Message: fmt.Sprintf("HEAD is detached; commits land on %s", branch), Next: back}), nil
	}
	return append(holds, ledger.Hold{Reason: ledger.BranchSwitched, Next: back,
		Message: fmt.Sprintf("%s is checked out; commits land on %s", gitops.Text(strings.TrimPrefix(there, "refs/heads/")), branch)}), nil
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

// elsewhere returns a hold if another worktree also has the branch checked out. A landing here would leave that
// worktree's index and files behind, and the next commit there would undo the landing.
func elsewhere(ctx context.Context, repo *gitops.Repository, r airlock.Record) ([]ledger.Hold, error) {
	tops, err := repo.Elsewhere(ctx, r.Branch)
	if err != nil || len(tops) == 0 {
		return nil, err
	}
	h := ledger.Hold{Reason: ledger.BranchSwitched, Message: fmt.Sprintf("%s is checked out in %s as well", r.BranchName(), gitops.Text(tops[0]))}
	for _, top := range tops {
		h.Next = append(h.Next, "git -C "+gitops.Pasteable(top)+" checkout --detach")
	}
	return []ledger.Hold{h}, nil
}

func operationNext(op string) []string {
	switch op {
	case "bisect":
		return []string{"git bisect reset"}
	case "merge":
		return []string{"git merge --continue", "git merge --abort"}
	}
	return []string{"git " + op + " --continue", "git " + op + " --abort"}
}

// pathsNamed bounds the number of paths in a command of a hold.
const pathsNamed = 50

func quoted(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(" " + gitops.Pasteable(p))
	}
	return b.String()
}

// Collision returns the hold for changes of the user in the way of a landing.
func (e *Engine) Collision(ctx context.Context, paths []string) ledger.Hold {
	h := ledger.Hold{Reason: ledger.Collision, Paths: gitops.Escaped(paths), Places: paths,
		Message: fmt.Sprintf("landing would overwrite changes of yours that are not committed, at %d paths", len(paths))}
	switch other := func(p string) bool { return land.Repository(e.Repo, p) }; {
	case slices.ContainsFunc(paths, other):
		h.Message = "landing would write into another repository, or over it: " + h.Paths[slices.IndexFunc(paths, other)]
	case len(paths) == 1:
		h.Message = "landing would overwrite a change of yours that is not committed: " + h.Paths[0]
	}
	if len(paths) <= pathsNamed {
		h.Next = e.putAside(ctx, paths)
	} else {
		h.Next = []string{"git stash push --include-untracked"}
	}
	return h
}

// putAside returns the commands that move paths out of the way: git stash for all paths that it can take, preceded by
// the commands that make it take them, and mv for the rest.
func (e *Engine) putAside(ctx context.Context, paths []string) []string {
	var next []string
	unstashable, err := land.FindUnstashable(ctx, e.Repo, paths)
	if err != nil {
		unstashable = land.Unstashable{} // the same error comes up again when git runs the next time
	}
	for _, p := range unstashable.NotStored {
		move := "mv --"
		if slices.Contains(unstashable.Worktrees, p) {
			move = "git worktree move --"
		}
		next = append(next, move+quoted([]string{p, land.FreeName(e.Repo.Top, p)}))
	}
	if len(unstashable.Emptied) > 0 {
		next = append(next, "mkdir --"+quoted(unstashable.Emptied))
	}
	if len(unstashable.Skipped) > 0 {
		next = append(next, "git update-index --no-skip-worktree --"+quoted(unstashable.Skipped))
	}
	if len(unstashable.Assumed) > 0 {
		next = append(next, "git update-index --no-assume-unchanged --"+quoted(unstashable.Assumed))
	}
	if len(unstashable.Intended) > 0 {
		next = append(next, "git --literal-pathspecs rm -q --cached --"+quoted(unstashable.Intended))
	}
	rest := slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return slices.Contains(slices.Concat(unstashable.NotStored, unstashable.Emptied), p)
	})
	if len(rest) > 0 {
		next = append(next, "git --literal-pathspecs stash push --all --"+quoted(rest))
	}
	return next
}

// interrupted returns the hold of a landing that a crash interrupted, if it cannot be completed or undone without
// overwriting later changes.
func (e *Engine) interrupted(ctx context.Context, paths []string) ledger.Hold {
	h := e.Collision(ctx, paths)
	h.Message = "a landing was interrupted, and files it was writing have been changed since; put them aside to let it be finished"
	return h
}

// conflict returns the hold of a commit that changes the same lines as the user's commits, that git am does not
// apply, or that needs a dropped commit.
func (e *Engine) conflict(ctx context.Context, at refs, c build.Conflict) ledger.Hold {
	switch branch := e.Record.BranchName(); {
	case c.Lacking != nil:
		return notApplied(*c.Lacking, c.Paths)
	case c.Refused != "":
		return ledger.Hold{Reason: ledger.Conflict, Message: gitops.Text(c.Refused).String(), Next: []string{"git airlock promote --engine tree"}}
	case c.Behind:
		return ledger.Hold{Reason: ledger.Conflict, Paths: gitops.Escaped(c.Paths), Next: []string{"git airlock visit", fmt.Sprintf("git airlock promote --drop %.12s", c.Commit)},
			Message: fmt.Sprintf("commit %.12s and a commit on %s change the same lines", c.Commit, branch)}
	case at.tip != at.promoted && e.Repo.IsAncestor(ctx, at.tip, at.promoted):
		return ledger.Hold{Reason: ledger.Conflict, Paths: gitops.Escaped(c.Paths), Next: []string{"git merge " + e.Record.Ref("pending") + "  # brings them back"},
			Message: fmt.Sprintf("commits that landed were taken off %s, and the agent's next change the same lines", branch)}
	case c.Landed:
		return ledger.Hold{Reason: ledger.Conflict, Paths: gitops.Escaped(c.Paths), Next: []string{"git airlock review", "git airlock promote --resolve", "git merge " + e.Record.Ref("pending")},
			Message: fmt.Sprintf("landed commits on %s and older or rewritten ones of the agent change the same lines", branch)}
	default:
		return ledger.Hold{Reason: ledger.Conflict, Paths: gitops.Escaped(c.Paths), Next: []string{"git airlock promote --resolve", "git merge " + e.Record.Ref("pending")},
			Message: fmt.Sprintf("commits of your own on %s and the agent's change the same lines", branch)}
	}
}

func (e *Engine) indexLocked() ledger.Hold {
	return ledger.Hold{Reason: ledger.IndexLocked, Message: "another git command holds the index lock; if none runs, it is left over from a crash",
		Next: []string{"rm " + gitops.Pasteable(e.Repo.GitDir+"/index.lock")}}
}

// refLocked returns the hold for the lock file of a ref or of the file that stores refs.
func refLocked(lock string) ledger.Hold {
	return ledger.Hold{Reason: ledger.IndexLocked, Message: "another git command holds the lock of a ref; if none runs, it is left over from a crash",
		Next: []string{"rm " + gitops.Pasteable(lock)}}
}

// commandAtWork returns the hold for a git command that a landing would make fail half-way.
func commandAtWork(c *land.CommandError) ledger.Hold {
	return ledger.Hold{Reason: ledger.IndexLocked, Message: fmt.Sprintf("git %s runs here as process %d; commits land when it is done", c.Subcommand, c.PID),
		Next: []string{fmt.Sprintf("ps -o pid,stat,etime,args -p %d  # is it waiting for you?", c.PID)}}
}

// locking returns a hold for a lock that another command should release in a moment. A lock that stays for several
// moments was left by a crash.
func locking(h ledger.Hold, before ledger.Outcome, now time.Time) remarks {
	r := remarks{[]ledger.Hold{h}, retrySoon}
	for _, b := range before.Of(ledger.IndexLocked) {
		if now.Sub(b.Since) > drainTime {
			r.retry = retryLater
		}
	}
	return r
}

// innerInvalid returns the hold for objects that the quarantine or the gate refused.
func innerInvalid(cause *inner.Invalid) remarks {
	next := []string{"git airlock visit -- git fsck", "git airlock visit"}
	switch {
	case cause.For != "":
		next = []string{"git airlock visit -- rm -rf -- " + gitops.Pasteable(cause.For)}
	case cause.Stalled:
		next = next[1:]
	}
	return remarks{[]ledger.Hold{{Reason: ledger.InnerInvalid, Message: cause.Reason, Next: next}}, retryLater}
}

// innerMain returns the hold for a workspace without a branch main.
func innerMain(names []inner.Ref) remarks {
	h := ledger.Hold{Reason: ledger.InnerMain, Message: "the inner repository has no branch main"}
	var shown []string
	for _, r := range names[:min(len(names), 10)] {
		shown = append(shown, gitops.Text(r.Name).String())
	}
	if len(shown) == 0 {
		h.Message += ", and no other ref"
		return remarks{[]ledger.Hold{h}, retryLater}
	}
	h.Message += "; it has " + strings.Join(shown, ", ")
	h.Next = []string{"git airlock visit -- git branch main " + gitops.Pasteable(names[0].Name)}
	return remarks{[]ledger.Hold{h}, retryLater}
}

// policyHold returns the hold of a commit that a rule holds. later is the number of commits after it that rules hold
// as well.
func policyHold(v ledger.GateResult, later int) ledger.Hold {
	h := ledger.Hold{Reason: ledger.Policy, Message: fmt.Sprintf("commit %.12s (%s)", v.Commit, words.Shorten(v.Subject, briefly))}
	accept := "git airlock promote"
	for _, f := range v.Findings {
		if f.Action != policy.Hold {
			continue
		}
		h.Message += fmt.Sprintf("; %s: %s", f.Rule, f.Detail)
		h.Paths = append(h.Paths, f.Paths...)
		for _, a := range acceptances(f) {
			accept += " --accept " + gitops.ShellQuote(a.String())
		}
	}
	if later > 0 {
		h.Message += fmt.Sprintf("; %d later ones are held, too: git airlock policy", later)
	}
	commit := fmt.Sprintf("%.12s", v.Commit)
	h.Next = []string{"git show " + commit, accept, "git airlock promote --drop " + commit}
	return h
}

// acceptancesNamed bounds the number of paths in a command. With more paths, the command names only the rule.
const acceptancesNamed = 10

// acceptances returns the narrowest acceptances of a finding that can be typed.
func acceptances(f policy.Finding) []policy.Acceptance {
	if len(f.Paths) == 0 || len(f.Paths) > acceptancesNamed || f.More {
		return []policy.Acceptance{{Rule: f.Rule}}
	}
	var list []policy.Acceptance
	for _, p := range f.Paths {
		list = append(list, policy.Acceptance{Rule: f.Rule, Path: p})
	}
	return list
}

// briefly bounds the characters of a subject in a message.
const briefly = 60

// teamUnreadable returns a hold of all commits. Otherwise the user would believe that the team's policy is enforced.
func teamUnreadable(cause error) ledger.Hold {
	h := ledger.Hold{Reason: ledger.Policy, Message: "the team's policy cannot be read: " + gitops.Text(cause.Error()).String()}
	if broken, ok := errors.AsType[*teams.PolicyError](cause); ok {
		h.Next = broken.Next
	}
	return h
}

// notApplied returns the hold of a commit that needs a dropped commit, and of all commits that need it.
func notApplied(d ledger.Dropped, paths []string) ledger.Hold {
	return ledger.Hold{Reason: ledger.Conflict, Paths: gitops.Escaped(paths),
		Message: fmt.Sprintf("commit %.12s (%s) does not apply without the rejected or dropped commits, and what needs it waits as well", d.Commit, words.Shorten(d.Subject, briefly)),
		Next:    []string{fmt.Sprintf("git airlock reject -m TEXT %.12s", d.Commit), "git airlock review", "git airlock visit"}}
}
