package decision

import (
	"fmt"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// TestApproveNamesWhatWaits checks that the command covers no commit that comes later.
func TestApproveNamesWhatWaits(t *testing.T) {
	var pending []ledger.Pair
	for i := range 7 {
		pending = append(pending, ledger.Pair{Inner: gitops.OID(fmt.Sprintf("%040d", i)), Outer: gitops.OID(fmt.Sprintf("%012d%028d", i, 0))})
	}
	for n, want := range map[int]string{
		2: "git airlock approve 000000000001 000000000002",
		6: "git airlock approve --upto 000000000006",
	} {
		some := func(inner gitops.OID) bool { return inner != pending[0].Inner && inner <= pending[n].Inner }
		if got := Approve(pending, some); got != want {
			t.Errorf("%d commits: %q, want %q", n, got, want)
		}
	}
}
