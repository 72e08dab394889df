package ledger_test

import (
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// The file of the decisions forgets a verdict once its commit has landed, unless the notes or the agent do not have it yet.
func TestOpenDecisions(t *testing.T) {
	t.Parallel()
	var d ledger.Decisions
	for id, r := range map[gitops.OID]ledger.Reviewed{
		"landed": {}, "waiting": {}, "explained": {Verdict: review.Verdict{Reason: "good"}}, "unwritten": {Unwritten: true},
		"earlier": {Earlier: []review.Verdict{{}}},
	} {
		r.Word, r.Inner = review.Approve, id
		d.Reviewed = append(d.Reviewed, r)
	}
	open := d.Open(func(id gitops.OID) bool { return id != "waiting" })
	for id, kept := range map[gitops.OID]bool{"landed": false, "waiting": true, "explained": true, "unwritten": true, "earlier": true} {
		if got := open.ReviewOf(id) != nil; got != kept {
			t.Errorf("the verdict on the commit %s is kept: %t, want %t", id, got, kept)
		}
	}
	if len(d.Reviewed) != 5 {
		t.Errorf("%d verdicts are left in the decisions from before", len(d.Reviewed))
	}
}
