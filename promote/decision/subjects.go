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
