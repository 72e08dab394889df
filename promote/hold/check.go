package hold

import (
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// Unchecked is the hold of commits that wait for the check of one of them. able reports that it can run here, and failure why it did
// not.
func Unchecked(commit gitops.OID, subject string, able bool, failure error) ledger.Hold {
	h := ledger.Hold{Reason: ledger.Check, Next: []string{fmt.Sprintf("git airlock check %.12s", commit)},
		Message: fmt.Sprintf("%s must pass on the tree of commit %.12s (%s) before it lands", checks.Key, commit, words.Shorten(subject, briefly))}
	switch {
	case failure != nil:
		h.Message += "; it could not run: " + gitops.Text(failure.Error()).String()
	case able:
		h.Message += "; it runs now"
	}
	return h
}

// CheckFailed is the hold of a commit whose tree has failed the check, and of those after it.
func CheckFailed(commit gitops.OID, subject string, status int) ledger.Hold {
	how := fmt.Sprintf("failed with status %d", status)
	if status == checks.TimeOver {
		how = "failed, or took longer than " + checks.TimeKey + " allows,"
	}
	name := fmt.Sprintf("%.12s", commit)
	return ledger.Hold{Reason: ledger.Check, Next: []string{"git airlock check " + name + "  # shows its last lines", "git airlock reject -m TEXT " + name, "git airlock visit"},
		Message: fmt.Sprintf("%s %s on the tree of commit %s (%s)", checks.Key, how, name, words.Shorten(subject, briefly))}
}
