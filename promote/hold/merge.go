package hold

import (
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// Merge returns the command that merges the commits of an inner ref into main, so that they land, or one that shows them. It works
// with any inner HEAD, and with a branch that has no commit in common with main. Notes cannot be merged like files: they stay inside,
// and are lost with the workspace. operation is [promote.State.Operation]: a checkout in the middle of a rebase would destroy the rebase.
func Merge(name, operation string) string {
	from := words.ShellQuote(name)
	switch {
	case operation != "":
		return "git airlock visit -- git status"
	case name == "":
		return "git airlock visit -- git for-each-ref"
	case name == "refs/stash":
		return "git airlock visit -- git stash pop"
	case strings.HasPrefix(name, "refs/notes/"):
		return "git airlock visit -- git notes " + gitops.Pasteable("--ref="+name) + " list  # notes do not land"
	case name == "HEAD": // which is another one on main
		from = "@{-1}"
	}
	return "git airlock visit -- sh -c " + gitops.Pasteable("git checkout main && git merge --no-edit --allow-unrelated-histories "+from)
}

// OnLine returns the holds of commits of another line than main, with the commands that work for them, or holds if from is empty. The next cycle is
// one of main, and makes no commit of another line pending: the user cannot merge, accept or drop it before main has it.
func OnLine(from string, holds []ledger.Hold) (changed []ledger.Hold) {
	if from == "" {
		return holds
	}
	for _, h := range holds {
		merge := Merge(from, "")
		switch h.Reason {
		case ledger.Conflict:
			h.Next = []string{"git airlock sync  # brings what has landed to the agent's main", merge + "  # and resolve the conflict there"}
		case ledger.Policy, ledger.Check, ledger.Review:
			if slices.ContainsFunc(h.Next, func(next string) bool { return strings.HasPrefix(next, "git airlock ") }) {
				h.Next = []string{merge + "  # on main, it can be accepted or left out"}
			}
		}
		changed = append(changed, h)
	}
	return changed
}
