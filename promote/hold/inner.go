package hold

import (
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// InnerInvalid returns the hold for objects that the quarantine or the gate refused.
func InnerInvalid(cause *inner.Invalid) ledger.Hold {
	next := []string{"git airlock visit -- git fsck", "git airlock visit"}
	switch {
	case cause.For != "":
		next = []string{"git airlock visit -- rm -rf -- " + gitops.Pasteable(cause.For)}
	case cause.Stalled:
		next = next[1:]
	case strings.Contains(cause.Reason, unknownExtension):
		next = withoutExtensions(cause.Reason)
	}
	return ledger.Hold{Reason: ledger.InnerInvalid, Message: inOneLine.Replace(cause.Reason), Next: next}
}

// inOneLine joins the list after a message of git, which has one entry in a line.
var inOneLine = strings.NewReplacer(`:; \t`, ": ", `; \t`, ", ")

// unknownExtension is git's error about a repository of a newer git (setup.c).
const unknownExtension = "unknown repository extension"

// withoutExtensions returns the commands after which the prison's git, which is older than the one that the agent ran, can read the inner
// repository. Refs in the new format can be converted only by a git that knows it.
func withoutExtensions(reason string) (next []string) {
	for _, c := range []struct{ extension, command string }{
		{"relativeworktrees", "-- git config --file .git/config --unset extensions.relativeWorktrees"},
		{"refstorage", " # there, with the git that the agent ran: git refs migrate --ref-format=files"},
		{"refstorage", "-- git config --file .git/config --unset extensions.refStorage  # if .git/reftable has no refs"},
	} {
		if strings.Contains(reason, c.extension) {
			next = append(next, "git airlock visit "+c.command)
		}
	}
	return append(next, "git airlock visit -- git config --file .git/config --get-regexp '^extensions[.]'")
}

// refsShown bounds the refs in the message of a hold.
const refsShown = 10

// InnerMain returns the hold for a workspace without a branch main. refs are those that it has.
func InnerMain(refs []inner.Ref) ledger.Hold {
	h := ledger.Hold{Reason: ledger.InnerMain, Message: "the inner repository has no branch main"}
	if len(refs) == 0 {
		h.Message += ", and no other ref"
		return h
	}
	var shown []string
	for _, r := range refs[:min(len(refs), refsShown)] {
		shown = append(shown, gitops.Text(r.Name).String())
	}
	h.Message += "; it has " + strings.Join(shown, ", ")
	h.Next = []string{"git airlock visit -- git branch main " + gitops.Pasteable(refs[0].Name)}
	return h
}
