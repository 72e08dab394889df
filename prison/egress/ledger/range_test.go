package ledger

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// TestRange compares parts of ledgers with what reading them whole returns.
func TestRange(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 7))
		dir := t.TempDir()
		w := open(t, dir, 400<<10)
		for i := range 1 + random.IntN(1500) {
			name := fmt.Sprintf("n%d.test", i) + strings.Repeat("x", random.IntN(3000))
			if err := w.Append(control.Record{Kind: control.KindFlow, Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		records := sound(t, dir)
		newest, err := Newest(dir)
		if err != nil || newest != records[len(records)-1].Seq {
			t.Fatalf("the newest is %d, %v", newest, err)
		}
		for range 25 {
			after, upTo := random.Uint64N(newest+2), random.Uint64N(newest+3)
			var got, want []control.Record
			for _, r := range records {
				if r.Seq > after && r.Seq <= upTo {
					want = append(want, r)
				}
			}
			if err := Range(dir, after, upTo, func(r control.Record) { got = append(got, r) }); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: %d records of %d after %d up to %d, want %d: %v", seed, len(got), newest, after, upTo, len(want), err)
			}
		}
	}
}

// TestRangeOfMissingLedger checks that a missing ledger has no records and no error.
func TestRangeOfMissingLedger(t *testing.T) {
	dir := t.TempDir()
	newest, err := Newest(dir)
	if err != nil || newest != 0 {
		t.Error(newest, err)
	}
	if err := Range(dir, 0, 9, func(control.Record) { t.Error("a record") }); err != nil {
		t.Error(err)
	}
}

// TestDenied checks that other records push no refusal by a denying rule out, and that the newest of too many of them stay.
func TestDenied(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, 20<<10)
	add := func(r control.Record) {
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	denied := control.Record{Kind: control.KindRefusal, Name: "evil.test", Reason: control.ReasonDenied}
	add(denied)
	for range 100 {
		add(control.Record{Kind: control.KindRequest, Path: strings.Repeat("x", 2000)})
	}
	add(denied)
	rotated := 0
	if oldest, err := Rotated(dir, func(control.Record) { rotated++ }); err != nil || oldest <= 1 || rotated != 1 {
		t.Fatalf("the oldest is %d, %d were rotated, %v", oldest, rotated, err)
	}
	var got []uint64
	if err := Denied(dir, 0, 102, func(r control.Record) { got = append(got, r.Seq) }); err != nil || !reflect.DeepEqual(got, []uint64{1, 102}) {
		t.Errorf("%d, %v", got, err)
	}
	denied.Path = strings.Repeat("y", 1000)
	for range 3 * maxDenied / 1000 {
		add(denied)
	}
	newest, err := Newest(dir)
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	if err := Denied(dir, 102, newest, func(r control.Record) { got = append(got, r.Seq) }); err != nil || len(got) < 1000 || got[len(got)-1] != newest || got[0] < 1000 {
		t.Errorf("%d denials, %v", len(got), err)
	}
}
