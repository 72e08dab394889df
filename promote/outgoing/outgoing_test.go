package outgoing

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/review"
)

// FuzzReadUpdates checks that any input of a hook is refused or becomes object names.
func FuzzReadUpdates(f *testing.F) {
	id, zero := strings.Repeat("a1", 20), strings.Repeat("0", 40)
	f.Add("refs/heads/x " + id + " refs/heads/x " + zero + "\n")
	f.Add("(delete) " + zero + " refs/heads/x " + id)
	f.Add("a b c d\n")
	f.Add("x " + id + " refs/notes/airlock " + zero + "\nx " + id + " refs/airlock/policy " + id + "\n")
	f.Fuzz(func(t *testing.T, in string) {
		updates, err := ReadUpdates(strings.NewReader(in))
		if err != nil {
			return
		}
		r := RangeOf(updates, "origin")
		if lines := strings.Count(in, "\n"); len(r.Tips) > len(updates) || lines > len(updates)+1 && !strings.Contains(in, " refs/") {
			t.Errorf("%q: %v", in, updates)
		}
		for _, id := range append(r.Tips, r.Without...) {
			if _, err := gitops.ParseOID(string(id)); err != nil || id == id.Zero() {
				t.Errorf("%q: %v", in, updates)
			}
		}
	})
}

// TestCovers checks which lines in the note of a commit are about it.
func TestCovers(t *testing.T) {
	o := origin{[]gitops.OID{"c", "o"}, "i"}
	c := Commit{ID: "c", Tree: "t", origins: []origin{o}}
	for _, x := range []struct {
		review.Verdict
		covers bool
	}{
		{review.Verdict{Word: review.Approve}, true},
		{review.Verdict{Word: review.Approve, Commit: "c"}, true},
		{review.Verdict{Word: review.Reject, Commit: "o"}, true},
		{review.Verdict{Word: review.Approve, Commit: "x"}, false},
		{review.Verdict{Word: review.Approve, Commit: "x", Tree: "t"}, true},
		{review.Verdict{Word: review.Approve, Commit: "x", Inner: "i"}, true},
		{review.Verdict{Word: review.Approve, Commit: "x", Inner: "j"}, false},
		{review.Verdict{Word: review.Seen, Commit: "c"}, false},
	} {
		if got := c.covers(o, x.Verdict); got != x.covers {
			t.Errorf("%+v: %v", x.Verdict, got)
		}
	}
	c.origins = append(c.origins, origin{[]gitops.OID{"p"}, ""})
	if c.covers(o, review.Verdict{Word: review.Approve}) {
		t.Error("a line without a commit counts for one of two originals")
	}
}

// TestStanding checks commits that revert each other.
func TestStanding(t *testing.T) {
	for _, x := range []struct {
		by   map[gitops.OID][]gitops.OID
		want gitops.OID
	}{
		{nil, ""},
		{map[gitops.OID][]gitops.OID{"a": {"r"}}, "r"},
		{map[gitops.OID][]gitops.OID{"a": {"r"}, "r": {"s"}}, ""},
		{map[gitops.OID][]gitops.OID{"a": {"r"}, "r": {"s"}, "s": {"t"}}, "r"},
		{map[gitops.OID][]gitops.OID{"a": {"r", "u"}, "r": {"s"}}, "u"},
	} {
		if got := lastRevert(x.by, "a", 5); got != x.want {
			t.Errorf("%v: %q, want %q", x.by, got, x.want)
		}
	}
}
