package hold

import (
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// Uncreated maps inner commits to the reason why git cannot create their files in the user's working tree. The zero value has none.
type Uncreated map[gitops.OID]error

// Add adds a commit.
func (u *Uncreated) Add(inner gitops.OID, cause error) {
	if *u == nil {
		*u = Uncreated{}
	}
	(*u)[inner] = cause
}

// Hold returns the hold of a pending commit, or nil if it is not one of these.
func (u Uncreated) Hold(t ledger.Pair) *ledger.Hold {
	cause, there := u[t.Inner]
	if !there {
		return nil
	}
	name := fmt.Sprintf("%.12s", t.Outer)
	return &ledger.Hold{Reason: ledger.Policy, Message: fmt.Sprintf("git cannot create the files of commit %s here: %s", name, gitops.Text(words.OneLine(cause))),
		Next: []string{"git show --stat " + name, drop(t.Outer), "git airlock promote  # tries again"}}
}

// Unlanded returns the error of a landing that fails at a commit. again reports that another try is made only by a command.
func Unlanded(commit gitops.OID, cause error, again bool) error {
	tries := ""
	if again {
		tries = "to try it again: git airlock promote, "
	}
	return fmt.Errorf("commit %.12s: %w (%sto leave it out: %s)", commit, cause, tries, drop(commit))
}
