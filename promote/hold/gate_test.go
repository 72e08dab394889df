package hold

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/ledger"
)

// TestPolicyCountsLaterCommits checks the grammar of a hold's message.
func TestPolicyCountsLaterCommits(t *testing.T) {
	for later, want := range map[int]string{1: "; 1 later one is held, too: ", 2: "; 2 later ones are held, too: "} {
		if h := Policy(ledger.GateResult{}, later); !strings.Contains(h.Message, want) {
			t.Errorf("%q, want %q", h.Message, want)
		}
	}
}
