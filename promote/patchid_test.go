package promote_test

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// roomy is the disk watchdog of a daemon whose workspace never fills the disk.
type roomy struct{}

func (roomy) Allow(int64)        {}
func (roomy) Full() *ledger.Hold { return nil }

// TestPatchIDOfVerdict checks that the note of a verdict has the id of git patch-id, whether the daemon has computed it before or not,
// and none for a commit without a patch.
func TestPatchIDOfVerdict(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		w := newWithReview(t)
		w.commits("one", "one", "1\n")
		w.agent("commit", "-q", "--allow-empty", "-m", "nothing")
		if early {
			w.engine.Guard = roomy{}
		}
		w.cycle()
		w.engine.Guard = nil
		results, err := ledger.ReadGateResults(w.engine.Dir(), ledger.NoRules, &ledger.Ledger{})
		check(t, err)
		w.verdict(review.Approve, "", "one", "nothing")
		w.wantLanded("nothing one")
		for commit, patches := range map[string]int{"HEAD~1": 1, "HEAD": 0} {
			id := gitops.OID(w.git("rev-parse", commit))
			want, _, _ := strings.Cut(w.git("-c", "alias.id=!git diff-tree -p "+string(id)+" | git patch-id --stable", "id"), " ")
			if len(strings.Fields(want)) != patches {
				t.Fatalf("git patch-id of %s: %q", commit, want)
			}
			if lines := review.Parse(w.git("notes", "--ref="+review.NotesRef, "show", string(id))); len(lines) != 1 || lines[0].Patch != want {
				t.Errorf("early %t, %s: the verdicts %+v, want the patch-id %q", early, commit, lines, want)
			}
			stored := results.Last(id).Patch != "" // beside load it may be the mark that computing it takes long
			if patch, known := results.PatchOf(id); stored != early || known && patch != want {
				t.Errorf("early %t, %s: stored %t: %q, %t", early, commit, stored, patch, known)
			}
		}
	}
}
