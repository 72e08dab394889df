package ledger

import (
	"slices"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// TestOriginals checks that a commit without a decision does not count as known because a landed commit has it in its history.
func TestOriginals(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), Pair{Inner: name("0"), Outer: name("1")}
	l, err := Read(dir, base, base.Outer, "")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	first, second := Pair{Inner: name("a"), Outer: name("b"), Without: []gitops.OID{name("2")}}, Pair{Inner: name("c"), Outer: name("d"), Without: []gitops.OID{name("3")}}
	check(l.SetTail([]Pair{first, second}))
	l.Land(second.Outer)
	dropped := func(ids ...string) (d Decisions) {
		for _, id := range ids {
			d.Dropped = append(d.Dropped, Dropped{Commit: name(id)})
		}
		return d
	}
	if got := l.Originals(dropped("2", "3")); got != nil {
		t.Errorf("%q without a rebase", got)
	}
	check(l.AddRebased([]Pair{{Inner: name("e"), Outer: first.Outer}, {Inner: name("f"), Outer: second.Outer}}))
	for _, c := range []struct {
		decided Decisions
		want    []gitops.OID
	}{
		{dropped("2", "3"), []gitops.OID{first.Inner, second.Inner}},
		{dropped("2"), []gitops.OID{first.Inner}},
		{dropped("3"), nil},
		{dropped(), nil},
	} {
		if got := l.Originals(c.decided); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
