package ledger

import (
	"errors"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

func name(digit string) gitops.OID { return gitops.OID(strings.Repeat(digit, 40)) }

// TestStoredTailIsCurrent checks that another program finds the pending pairs as they are, also if only something else than an outer commit has
// changed.
func TestStoredTailIsCurrent(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), Pair{Inner: name("0"), Outer: name("1")}
	l, err := Read(dir, base, base.Outer, "")
	if err != nil {
		t.Fatal(err)
	}
	last := Pair{Inner: name("c"), Outer: name("d")}
	for _, p := range []Pair{{Inner: name("a"), Outer: name("b")}, {Inner: name("e"), Outer: name("b")},
		{Inner: name("e"), Outer: name("b"), Without: []gitops.OID{name("a")}}, {Inner: name("e"), Outer: name("b"), Merged: true}} {
		if err := errors.Join(l.SetTail([]Pair{p, last}), l.Save()); err != nil {
			t.Fatal(err)
		}
		again, err := Read(dir, base, p.Outer, last.Outer)
		if err != nil || len(again.Landed) != 1 || again.Landed[0].entry() != p.entry() || len(again.Tail) != 1 {
			t.Fatalf("%v %+v, want %+v", err, again, p)
		}
	}
}

// TestLedgerRefusesSecondLanding checks that no pair gets into the ledger that would let a commit land twice, and that a refused one changes nothing.
func TestLedgerRefusesSecondLanding(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), Pair{Inner: name("0"), Outer: name("1")}
	l, err := Read(dir, base, base.Outer, "")
	landed, waits, fresh := Pair{Inner: name("a"), Outer: name("b")}, Pair{Inner: name("c"), Outer: name("d")}, Pair{Inner: name("e"), Outer: name("f")}
	if err = errors.Join(err, l.SetTail([]Pair{landed, waits})); err != nil || l.Land(landed.Outer) != 1 {
		t.Fatal(err)
	}
	for _, tail := range [][]Pair{
		{{Inner: landed.Inner, Outer: fresh.Outer}}, {waits, {Inner: fresh.Inner, Outer: landed.Outer}},
		{waits, fresh, {Inner: waits.Inner, Outer: name("9")}}, {waits, {Inner: fresh.Inner, Outer: waits.Outer}}, {{Inner: base.Inner, Outer: fresh.Outer}},
	} {
		if twice, ok := errors.AsType[*TwiceError](l.SetTail(tail)); !ok || len(twice.Next()) == 0 || len(l.Tail) != 1 || l.PendingTip() != waits.Outer {
			t.Errorf("%+v: %v; pending %+v", tail, twice, l.Tail)
		}
	}
	if err := l.SetTail([]Pair{waits, fresh}); err != nil || l.Land(fresh.Outer) != 2 {
		t.Errorf("%v %+v", err, l)
	}
}

// TestLostEntries counts the commits that the outcome knows and the ledger has lost.
func TestLostEntries(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), Pair{Inner: name("0"), Outer: name("1")}
	o := Outcome{Version: version, Total: 3}
	if err := o.Write(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir, base, name("b"), ""); err == nil || !strings.Contains(err.Error(), "0 of 3 commits") {
		t.Errorf("without a file: %v", err)
	}
}

// TestLinesInEntries reads the entries of other lines than main. Those of older versions, without such words, are main's.
func TestLinesInEntries(t *testing.T) {
	t.Parallel()
	inner, outer := strings.Repeat("a", 40), strings.Repeat("b", 40)
	for words, want := range map[string]Pair{
		"":                        {},
		" aside":                  {Aside: true},
		" from=61":                {From: "a"},
		" from=782f79207a joined": {From: "x/y z", Joined: true},
		" aside from=c2a00a":      {Aside: true, From: "\u00a0\n"},
	} {
		want.Inner, want.Outer = gitops.OID(inner), gitops.OID(outer)
		entry := inner + " " + outer + " exact" + words
		var got Pair
		if err := got.UnmarshalText([]byte(entry)); err != nil || got.entry() != want.entry() || got.entry() != entry {
			t.Errorf("%q: %v, %q", entry, err, got.entry())
		}
		if got.OffMain() != (want.From != "" && !want.Joined) {
			t.Errorf("%q: off main: %t", entry, got.OffMain())
		}
	}
	if err := new(Pair).UnmarshalText([]byte(inner + " " + outer + " exact from=6")); err == nil {
		t.Error("a wrong escape")
	}
	for revision, want := range map[string]string{"a": "a", "refs/heads/x/y": "x/y", "heads/a~1": "a", "a@{1}": "a", "a^{/x y}": "a", "refs/tags/v1": "tags/v1", "@{-1}": "@{-1}", ":/x": ":/x"} {
		if got := LineOf(revision); got != want {
			t.Errorf("%q is on line %q, not %q", revision, got, want)
		}
	}
}
