package promote

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// Positions returns the holds that follow from where the user stands, in the order of the reasons: in the middle of an operation,
// without the airlock's branch, on another one, or on none. There is none if they stand where landing needs them. tip is
// the outer branch's commit, empty if it is deleted.
func Positions(ctx context.Context, repo *gitops.Repository, r airlock.Record, tip, promoted gitops.OID) (holds []Hold, err error) {
	branch := r.BranchName()
	if op := repo.Operation(); op != "" {
		holds = append(holds, Hold{Reason: OperationInProgress,
			Message: fmt.Sprintf("a %s is in progress; commits land when it is done", op), Next: operationNext(op)})
	}
	back := []string{"git checkout " + gitops.Pasteable(branch)}
	if tip == "" {
		holds = append(holds, Hold{Reason: BranchDeleted, Message: fmt.Sprintf("branch %s does not exist any more", gitops.Escape(branch)),
			Next: []string{"git branch " + gitops.Pasteable(branch) + " " + string(promoted)}})
	}
	there, err := repo.Branch(ctx)
	if err != nil {
		return nil, err
	}
	switch there {
	case r.Branch:
		twice, err := elsewhere(ctx, repo, r)
		return append(holds, twice...), err
	case "":
		return append(holds, Hold{Reason: DetachedHead, Message: fmt.Sprintf("HEAD is detached; commits land on %s", gitops.Escape(branch)), Next: back}), nil
	}
	return append(holds, Hold{Reason: BranchSwitched, Next: back,
		Message: fmt.Sprintf("%s is checked out; commits land on %s", gitops.Escape(strings.TrimPrefix(there, "refs/heads/")), gitops.Escape(branch))}), nil
}

// elsewhere is the hold of a branch that another worktree has checked out as well: what lands here would leave that
// one's index and files behind, and its next commit would take it back.
func elsewhere(ctx context.Context, repo *gitops.Repository, r airlock.Record) ([]Hold, error) {
	tops, err := repo.Elsewhere(ctx, r.Branch)
	if err != nil || len(tops) == 0 {
		return nil, err
	}
	h := Hold{Reason: BranchSwitched, Message: fmt.Sprintf("%s is checked out in %s as well", gitops.Escape(r.BranchName()), gitops.Escape(tops[0]))}
	for _, top := range tops {
		h.Next = append(h.Next, "git -C "+gitops.Pasteable(top)+" checkout --detach")
	}
	return []Hold{h}, nil
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

// pathsNamed bounds how many paths a command in a hold's next step names.
const pathsNamed = 50

func quoted(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(" " + gitops.Pasteable(p))
	}
	return b.String()
}

func escaped(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = gitops.Escape(p)
	}
	return out
}

func (c *cycle) collision(ctx context.Context, paths []string) Hold {
	h := Hold{Reason: Collision, Paths: escaped(paths), places: paths,
		Message: fmt.Sprintf("landing would overwrite changes of yours that are not committed, at %d paths", len(paths))}
	if len(paths) == 1 {
		h.Message = "landing would overwrite a change of yours that is not committed: " + h.Paths[0]
	}
	if len(paths) <= pathsNamed {
		h.Next = c.putAside(ctx, paths)
	} else {
		h.Next = []string{"git stash push --include-untracked"}
	}
	return h
}

// putAside are the commands that put paths aside: git stash, once that can be told of them, and for the rest another name.
func (c *cycle) putAside(ctx context.Context, paths []string) []string {
	var next []string
	stubborn, err := c.Repo.Stubborn(ctx, paths)
	if err != nil {
		stubborn = gitops.Stubborn{} // what hinders git here is told where it is asked again
	}
	for _, p := range stubborn.Strange {
		next = append(next, "mv --"+quoted([]string{p, p + ".mine"}))
	}
	if len(stubborn.Skipped) > 0 {
		next = append(next, "git update-index --no-skip-worktree --"+quoted(stubborn.Skipped))
	}
	if len(stubborn.Assumed) > 0 {
		next = append(next, "git update-index --no-assume-unchanged --"+quoted(stubborn.Assumed))
	}
	if len(stubborn.Intended) > 0 {
		next = append(next, "git --literal-pathspecs rm -q --cached --"+quoted(stubborn.Intended))
	}
	rest := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return slices.Contains(stubborn.Strange, p) })
	if len(rest) > 0 {
		next = append(next, "git --literal-pathspecs stash push --all --"+quoted(rest))
	}
	return next
}

// interrupted is the hold of a landing that a crash interrupted and that cannot be finished or taken back without
// writing over something that was changed since.
func (c *cycle) interrupted(ctx context.Context, paths []string) Hold {
	h := c.collision(ctx, paths)
	h.Message = "a landing was interrupted, and files it was writing have been changed since; put them aside to let it be finished"
	return h
}

// conflict is the hold of commits that change what the user's own commits changed, too, or that git am does not carry.
func (b *builder) conflict(ctx context.Context) Hold {
	if b.refused != "" {
		return Hold{Reason: Conflict, Message: gitops.Escape(b.refused), Next: []string{"git airlock promote --engine tree"}}
	}
	branch, resolve, merge := gitops.Escape(b.Record.BranchName()), "git airlock promote --resolve", "git merge "+b.Record.Ref("pending")
	if b.tip != b.promoted && b.Repo.IsAncestor(ctx, b.tip, b.promoted) {
		return Hold{Reason: Conflict, Paths: escaped(b.stopped), Next: []string{merge + "  # brings them back"},
			Message: fmt.Sprintf("commits that landed were taken off %s, and the agent's next change the same lines", branch)}
	}
	return Hold{Reason: Conflict, Paths: escaped(b.stopped), Next: []string{resolve, merge},
		Message: fmt.Sprintf("commits of your own on %s and the agent's change the same lines", branch)}
}

func (c *cycle) indexLocked() Hold {
	return Hold{Reason: IndexLocked, Message: "another git command holds the index lock; if none runs, it is left over from a crash",
		Next: []string{"rm " + gitops.Pasteable(c.Repo.GitDir+"/index.lock")}}
}

// refLocked is the hold of a lock that is there in the place of a ref or of what refs are kept in.
func refLocked(lock string) Hold {
	return Hold{Reason: IndexLocked, Message: "another git command holds the lock of a ref; if none runs, it is left over from a crash",
		Next: []string{"rm " + gitops.Pasteable(lock)}}
}

// holdLocked holds for what another command should be done with in a moment; what it is not done with in several, it has left.
func (c *cycle) holdLocked(h Hold) {
	c.outcome.Retry = unsettledPoll
	for _, before := range c.outcome.Holds {
		if before.Reason == IndexLocked && c.now.Sub(before.Since) > drainTime {
			c.outcome.Retry = mendedPoll
		}
	}
	c.hold(h)
}

func (c *cycle) innerInvalid(cause *gitops.Invalid) Hold {
	c.outcome.Retry = mendedPoll
	look := []string{"git airlock visit -- git fsck", "git airlock visit"}
	switch {
	case cause.For != "":
		look = []string{"git airlock visit -- rm -rf -- " + gitops.Pasteable(cause.For)}
	case cause.Stalled:
		look = look[1:]
	}
	return Hold{Reason: InnerInvalid, Message: cause.Reason, Next: look}
}

func (c *cycle) innerMain(refs []gitops.InnerRef) Hold {
	c.outcome.Retry = mendedPoll
	h := Hold{Reason: InnerMain, Message: "the inner repository has no branch main"}
	var names []string
	for _, r := range refs[:min(len(refs), 10)] {
		names = append(names, gitops.Escape(r.Name))
	}
	if len(names) == 0 {
		h.Message += ", and no other ref"
		return h
	}
	h.Message += "; it has " + strings.Join(names, ", ")
	h.Next = []string{"git airlock visit -- git branch main " + gitops.Pasteable(refs[0].Name)}
	return h
}

// review is the hold of all that waits for the user to look at it first. What a start asked for goes before the
// configuration, and stays: it takes another start to change it.
func (c *cycle) review() Hold {
	h := Hold{Reason: Review, Message: "airlock.autoLand is false: commits wait until they are promoted by hand",
		Next: []string{"git log -p " + gitops.Pasteable(c.Record.BranchName()) + ".." + strings.TrimPrefix(c.Record.Ref("pending"), "refs/"), "git airlock promote"}}
	if asked, err := gitops.Config(c.Record.Settings).Bool("airlock.autoLand", true); err == nil && !asked {
		h.Message = "it was started with --no-auto-land or git -c airlock.autoLand=false: commits wait until they are promoted by hand"
		h.Next = append(h.Next, "git airlock stop && git airlock start --no-auto-land=false")
	}
	return h
}
