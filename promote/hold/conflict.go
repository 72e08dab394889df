package hold

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/busy"
	"github.com/git-airlock/git-airlock/promote/build"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// Resolve is the command that starts the merge of a conflicting commit.
const Resolve = "git airlock promote --resolve"

// nameFirst is the command that names the hold of the commits that come before a conflict. It starts the merge once they are out of the way.
const nameFirst = Resolve + "  # names what comes first, or starts the merge"

// thenMerge is the command that starts the merge once a partial clone has the files for it.
const thenMerge = Resolve + "  # then starts the merge"

// Conflict returns the hold of a commit that changes the same lines as the user's commits, that git am does not apply, or that needs a
// dropped commit. landed reports that commits of the agent have landed. refused is [history.Plan.RefusedBefore].
func Conflict(c build.Conflict, branch gitops.Text, landed bool, refused func(gitops.OID) []ledger.Reviewed) ledger.Hold {
	h := ledger.Hold{Reason: ledger.Conflict, Paths: gitops.Escaped(c.Paths)}
	switch {
	case c.Crash != nil:
		h.Message = unmerged(c.Commit, c.Crash)
		h.Next = unmergedNext(c.Commit, c.Crash, "git airlock promote --engine tree")
	case c.TooMany && c.Lacking == nil:
		h.Message = fmt.Sprintf("more newer commits on %s than can be compared with commit %.12s change the same lines; it waits, because it could take back what they change", branch, c.Commit)
		h.Next = []string{"git airlock review", "git airlock visit", drop(c.Commit)}
		if !c.Behind {
			h.Next = append([]string{resolve(c)}, h.Next...)
		}
	case c.Lacking != nil:
		return notApplied(*c.Lacking, c.Paths, refused(c.Lacking.Commit))
	case c.Refused != "":
		return ledger.Hold{Reason: ledger.Conflict, Message: gitops.Text(c.Refused).String(), Next: []string{"git airlock promote --engine tree"}}
	case c.Remote != "":
		h.Message = fmt.Sprintf("commit %.12s and a commit on %s change the same lines; you can merge it once this partial clone has the files of older commits", c.Commit, branch)
		h.Next = []string{"git fetch --refetch --no-filter " + gitops.Pasteable(c.Remote) + "  # fetches the files of all commits", thenMerge, "git airlock visit", drop(c.Commit)}
	case c.Behind:
		h.Message = fmt.Sprintf("commit %.12s and a commit on %s change the same lines; you can merge it once the pending commits that do not need it have landed or are left out", c.Commit, branch)
		h.Next = []string{nameFirst, "git airlock review", "git airlock visit", drop(c.Commit)}
	case c.Gone && landed:
		h.Message = fmt.Sprintf("commits that landed were taken off %s, and the agent's next change the same lines", branch)
		h.Next = []string{Resolve + "  # brings them back"}
	case c.Gone:
		h.Message = fmt.Sprintf("commits of the snapshot were taken off %s, and the agent's change the same lines", branch)
		h.Next = []string{Resolve + "  # brings them back"}
	case c.Landed:
		h.Message = fmt.Sprintf("landed commits on %s and other commits of the agent change the same lines", branch)
		h.Next = []string{"git airlock review", resolve(c)}
	default:
		h.Message = fmt.Sprintf("commits of your own on %s and the agent's change the same lines", branch)
		h.Next = []string{resolve(c)}
	}
	if len(c.Lacks) > 0 {
		h.Message += fmt.Sprintf("; the merge cannot bring all of the agent's change of %s, which takes back what has landed since", words.List(gitops.Escaped(c.Lacks), stagedNamed))
		h.Next = append(h.Next, fmt.Sprintf("git airlock visit -- git show %.12s --%s", c.Commit, quoted(pathspecs(c.Lacks[:min(len(c.Lacks), stagedNamed)])))+wholeChange)
	}
	return h
}

// wholeChange marks the command that shows the change of a commit that a merge cannot bring completely.
const wholeChange = "  # the whole change"

// resolve returns the command that starts the merge, with what else it does.
func resolve(c build.Conflict) string {
	if c.Off {
		return Resolve + "  # may bring back commits that were taken off the branch"
	}
	return Resolve
}

func unmerged(commit gitops.OID, crash error) string {
	return fmt.Sprintf("git cannot merge commit %.12s: %s", commit, gitops.Text(words.OneLine(crash)))
}

// unmergedNext returns the next commands for a commit that git cannot merge. again is the one that tries again.
func unmergedNext(commit gitops.OID, crash error, again string) []string {
	next := append([]string{"git airlock visit"}, MoreTime(crash)...)
	return append(next, again+"  # tries again", drop(commit))
}

// MoreTime returns the command that gives git more time to merge, if the error of a merge is that it had not enough.
func MoreTime(crash error) []string {
	if slow, ok := errors.AsType[*busy.Error](crash); ok && slow.More() != "" {
		return []string{slow.More()}
	}
	return nil
}

// Crashed returns an [Error] if err is a crash of git that was to start the merge of a conflicting commit, and otherwise err.
func Crashed(commit gitops.OID, err error) error {
	if !gitops.Crashed(err) {
		return err
	}
	return &Error{Hold: ledger.Hold{Reason: ledger.Conflict, Message: unmerged(commit, err),
		Next: unmergedNext(commit, err, Resolve)}}
}

// Behind returns the hold of a conflict that cannot be merged yet, with the next commands of the one that keeps other commits from landing
// before it. It is nil without a conflict. Its next commands do not include the one that prints this hold.
func Behind(holds []ledger.Hold) *ledger.Hold {
	conflicts := func(h ledger.Hold) bool { return h.Reason == ledger.Conflict }
	first := slices.IndexFunc(holds, conflicts)
	if first < 0 {
		return nil
	}
	conflict := holds[first]
	if other := slices.IndexFunc(holds, func(h ledger.Hold) bool { return !conflicts(h) }); other >= 0 && slices.Contains(conflict.Next, nameFirst) {
		conflict.Message += fmt.Sprintf(" (%s: %s)", holds[other].Reason, holds[other].Message)
		conflict.Next = holds[other].Next
	}
	conflict.Next = slices.DeleteFunc(slices.Clone(conflict.Next), func(next string) bool { return strings.HasPrefix(next, Resolve) })
	if len(conflict.Next) == 0 {
		conflict.Next = []string{"git airlock review", "git airlock visit"}
	}
	return &conflict
}
