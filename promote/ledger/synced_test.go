package ledger

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/review"
)

// TestUnsent checks which verdicts the agent is told, and that it is told each once.
func TestUnsent(t *testing.T) {
	t.Parallel()
	var d Decisions
	for i, v := range []review.Verdict{{Word: review.Fix, Reason: "test"}, {Word: review.Reject, Reason: "no"}, {Word: review.Approve, Reason: "fine"},
		{Word: review.Approve}, {Word: review.Undone, Reason: "operation 1 was undone"}, {Word: review.Seen, Reason: "x"}} {
		v.Inner = gitops.OID(strings.Repeat(string('a'+rune(i)), 40))
		d.Reviewed = append(d.Reviewed, Reviewed{Verdict: v})
	}
	dir := t.TempDir()
	want := []string{"changes requested: test", "rejected: no", "approved: fine"}
	for len(want) > 0 {
		s, err := ReadSynced(dir)
		if err != nil {
			t.Fatal(err)
		}
		unsent := s.Unsent(d)
		if len(unsent) != len(want) || unsent[0].Text != want[0] {
			t.Fatalf("%+v, want %q", unsent, want)
		}
		s.MarkSent(unsent[0], d)
		if err := s.Write(dir); err != nil {
			t.Fatal(err)
		}
		want = want[1:]
	}
	s, _ := ReadSynced(dir)
	d.Reviewed[0].Reason = "another"
	if unsent := s.Unsent(d); len(unsent) != 1 || unsent[0].Text != "changes requested: another" {
		t.Errorf("%+v", unsent)
	}
	ghost := identity.NewGhost()
	s.InventColleague(ghost)
	first := s.Colleague
	s.InventColleague(ghost)
	if s.Colleague != first || first.Name == ghost.Name || first.Name == "" {
		t.Errorf("%+v %+v", first, s.Colleague)
	}
}
