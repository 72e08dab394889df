package decision

import (
	"context"
	"fmt"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

const (
	subjectsNamed  = 3
	subjectLetters = 40
)

// Subjects returns the subjects of the first n commits for which some is true, escaped. Only a few are named.
func Subjects(ctx context.Context, inside *quarantine.Inspector, pending []ledger.Pair, n int, some func(inner gitops.OID) bool) string {
	var list []string
	for _, t := range pending {
		if len(list) == subjectsNamed {
			break
		}
		if !some(t.Inner) {
			continue
		}
		c, err := inside.Commit(ctx, t.Inner)
		if err != nil {
			continue // the number is what counts
		}
		list = append(list, words.Shorten(c.Subject(), subjectLetters))
	}
	if more := n - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// Approve returns the command that approves the pending commits for which some is true, and none that the agent adds before the user types
// the command.
func Approve(pending []ledger.Pair, some func(inner gitops.OID) bool) string {
	command, n, newest := "git airlock approve", 0, gitops.OID("")
	for _, t := range pending {
		if some(t.Inner) {
			command, n, newest = command+fmt.Sprintf(" %.12s", t.Outer), n+1, t.Outer
		}
	}
	if n > maxNamed {
		return fmt.Sprintf("git airlock approve --upto %.12s", newest)
	}
	return command
}
