package ledger

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// TestGateResultsUnderRules checks which results count under the rules of another day, and that the fingerprint of the
// rules is computed only for waiting commits.
func TestGateResultsUnderRules(t *testing.T) {
	outer, inner := gitops.OID(strings.Repeat("11", 20)), gitops.OID(strings.Repeat("1a", 20))
	dir, asked := t.TempDir(), 0
	rules := func(text string) func() string { return func() string { asked++; return text } }
	read := func(text string, l *Ledger) GateResults {
		t.Helper()
		v, err := ReadGateResults(dir, rules(text), l)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	landed := &Ledger{outer: map[gitops.OID]bool{outer: true}}
	if v := read("a", landed); v.Of(outer) != nil || asked != 0 {
		t.Errorf("without a file: %+v, rules read %d times", v, asked)
	}
	waits := &Ledger{Tail: []Pair{{Inner: inner, Outer: outer}}, outer: map[gitops.OID]bool{}}
	v := read("a", waits)
	v.Add(GateResult{Commit: outer, Inner: inner})
	if err := v.Save(dir, waits); err != nil {
		t.Fatal(err)
	}
	asked = 0
	if v := read("b", landed); v.Of(outer) == nil || asked != 0 {
		t.Errorf("landed: %+v, rules read %d times", v.Of(outer), asked)
	}
	if v := read("a", waits); v.Of(outer) == nil || asked == 0 {
		t.Errorf("waiting, the same rules: %+v, rules read %d times", v.Of(outer), asked)
	}
	v = read("b", waits)
	if v.Of(outer) != nil || v.Last(outer) == nil {
		t.Errorf("waiting, other rules: %+v, before %+v", v.Of(outer), v.Last(outer))
	}
	if err := v.Save(dir, waits); err != nil { // forgets the result under the other rules
		t.Fatal(err)
	}
	if v := read("b", waits); v.Last(outer) != nil {
		t.Errorf("after other rules: %+v", v.Last(outer))
	}
}
