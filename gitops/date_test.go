package gitops_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestUnshownDate compares the dates that are refused with those at which git log ends: random ones, and those around both ends.
func TestUnshownDate(t *testing.T) {
	t.Parallel()
	r := gitopstest.New(t)
	tree := r.Run("write-tree")
	random := rand.New(rand.NewPCG(1, 2))
	unshown := 0
	for range 150 {
		hhmm := random.Int64N(2*9999+1) - 9999
		offset := (hhmm/100*60 + hhmm%100) * 60
		seconds := uint64(random.Int64())
		switch near := random.Int64N(3) - 1; random.IntN(3) {
		case 0:
			seconds = uint64(max(0, near-offset))
		case 1:
			seconds = math.MaxInt64 - uint64(max(0, offset)) + uint64(near) // near can be -1
		}
		c := gitops.Commit{Tree: gitops.OID(tree), Author: fmt.Sprintf("A <a@x> %d %+05d", seconds, hhmm), Committer: "C <c@x> 1 +0000"}
		id := gitopstest.Input(t, r.Top, nil, string(c.Bytes()), "hash-object", "-t", "commit", "-w", "--literally", "--stdin")
		_, err := gitopstest.TryCommand(r.Top, nil, "log", "-1", "--format=%ad", id)
		when := c.UnshownDate()
		if (err != nil) != (when != "") {
			t.Errorf("%s: refused as %q, and git log: %v", c.Author, when, err)
		}
		c.Author, c.Committer = c.Committer, c.Author
		if c.UnshownDate() != when {
			t.Errorf("%s: as the committer's date it is %q", c.Committer, c.UnshownDate())
		}
		if err != nil {
			unshown++
		}
	}
	if unshown < 10 {
		t.Errorf("git log ended at %d dates only", unshown)
	}
}
