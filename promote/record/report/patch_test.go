package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
)

// TestManyCommits reads the largest files that a fetched record can have. If each commit searched the whole text, the test would
// not end.
func TestManyCommits(t *testing.T) {
	commits := make([]record.Commit, 100_000)
	for i := range commits {
		commits[i] = record.Commit{Outer: gitops.OID(fmt.Sprintf("%040x", 2*i+1)), Inner: gitops.OID(fmt.Sprintf("%040x", 2*i+2))}
	}
	filler := strings.Repeat("\nFrom "+strings.Repeat("f", 39)+"\n", 170_000)
	mails := fmt.Sprintf("From %s x\n\nfirst\n---\n", commits[0].Outer) + filler + fmt.Sprintf("\nFrom %s x\n\nlast\n---\n", commits[99_999].Inner)
	patches := patchesOf(commits, []byte(mails))
	for i, p := range patches {
		if p.found != (i == 0 || i == 99_999) {
			t.Errorf("commit %d: found is %v", i, p.found)
		}
	}
}
