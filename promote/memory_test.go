package promote_test

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/ledger"
)

// TestMergeBeyondTheMemory merges a file for which git asks for more memory than airlock.limit.memory allows, before it writes to it: git guesses
// the number of lines from the first ones, which are empty. The commit is a conflict, and those around it land.
func TestMergeBeyondTheMemory(t *testing.T) {
	notShort(t)
	t.Parallel()
	base := strings.Repeat("\n", 300) + strings.Repeat(strings.Repeat("z", 99)+"\n", 17<<20/100)
	w := newWorld(t, "sha1", tree{"f": plain(base)})
	w.mine("f", "ours"+base)
	w.commits("before", "n", "1\n")
	w.commits("large", "f", base+"theirs\n")
	w.commits("after", "z", "1\n")
	w.cycle()
	o := w.cycle()
	if got := w.subjects(); !strings.HasPrefix(got, "after before ") || !o.Held(ledger.Conflict) {
		t.Fatalf("landed %q, %+v", got, o)
	}
}
