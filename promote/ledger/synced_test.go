package ledger

import (
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/review"
)

// TestUntold checks which verdicts the agent is told, and that it is told each once.
func TestUntold(t *testing.T) {
	t.Parallel()
	var d Decisions
	for i, v := range []review.Verdict{{Word: review.Fix, Reason: "test"}, {Word: review.Reject, Reason: "no"}, {Word: review.Approve, Reason: "fine"},
		{Word: review.Approve}, {Word: review.Undone, Reason: "operation 1 was undone"}, {Word: review.Seen, Reason: "x"}} {
		v.Inner = gitops.OID('a' + rune(i))
		d.Reviewed = append(d.Reviewed, Reviewed{Verdict: v})
	}
	dir := t.TempDir()
	want := []string{"changes requested: test", "rejected: no", "approved: fine"}
	for len(want) > 0 {
		s, err := ReadSynced(dir)
		if err != nil {
			t.Fatal(err)
		}
		untold := s.Untold(d)
		if len(untold) != len(want) || untold[0].Text != want[0] {
			t.Fatalf("%+v, want %q", untold, want)
		}
		s.Tell(untold[0], d)
		if err := s.Write(dir); err != nil {
			t.Fatal(err)
		}
		want = want[1:]
	}
	s, _ := ReadSynced(dir)
	d.Reviewed[0].Reason = "another"
	if untold := s.Untold(d); len(untold) != 1 || untold[0].Text != "changes requested: another" {
		t.Errorf("%+v", untold)
	}
	ghost := identity.NewGhost()
	s.Invent(ghost)
	first := s.Colleague
	s.Invent(ghost)
	if s.Colleague != first || first.Name == ghost.Name || first.Name == "" {
		t.Errorf("%+v %+v", first, s.Colleague)
	}
}
