package operation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

func name(n int) gitops.OID { return gitops.OID(fmt.Sprintf("%040x", n)) }

func TestRoundTrip(t *testing.T) {
	for _, o := range []Operation{
		{Number: 1, Kind: Land, Branch: "refs/heads/main", Before: name(1), After: name(2), PromotedBefore: name(1), Notes: []gitops.RefUpdate{{Ref: "refs/notes/x", New: name(9)}},
			Landed: []ledger.Pair{{Inner: name(5), Outer: name(2), Merged: true, Without: []gitops.OID{name(6)}}}},
		{Number: 2, Previous: name(7), Kind: Undo, Of: 1, Branch: "refs/heads/\u00e4\"\n", Before: name(2), After: name(1)},
		{Number: 3, Previous: name(8), Kind: Redo, Of: 1, Before: name(2), After: name(2)},
	} {
		o.At = time.Unix(1700000000, 0).UTC()
		c, err := o.Commit(name(3), "A <a@example.org>")
		if err != nil {
			t.Fatal(err)
		}
		read, err := gitops.ParseCommit(c.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(name(4), read)
		o.ID = name(4)
		if err != nil || !reflect.DeepEqual(got, o) {
			t.Errorf("%+v, %v\nwant %+v", got, err, o)
		}
	}
	if _, err := Parse(name(1), gitops.Commit{Message: []byte("x\n\n{")}); err == nil || !strings.Contains(err.Error(), "read operation") {
		t.Error(err)
	}
}

// FuzzParse checks that what was read is written and read again as it was.
func FuzzParse(f *testing.F) {
	f.Add([]byte("land\n\n{\"before\":\"" + name(1) + "\",\"after\":\"" + name(2) + "\"}"))
	f.Fuzz(func(t *testing.T, message []byte) {
		o, err := Parse(name(1), gitops.Commit{Message: message})
		if err != nil {
			return
		}
		c, err := o.Commit(name(3), "A <a@example.org>")
		if err != nil {
			return // a time that JSON cannot hold
		}
		if again, err := Parse(name(1), c); err != nil || !again.At.Equal(o.At) || again.Kind != o.Kind || len(again.Landed) != len(o.Landed) {
			t.Fatalf("%+v became %+v, %v", o, again, err)
		}
	})
}

// TestChain compares random chains with a list of landings and a position in it.
func TestChain(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var c Chain
		var history []Operation // the landings that stand, and behind them those that can be redone
		stands := 0
		for range 1 + r.IntN(30) {
			o, newest, undoErr := c.Find(0)
			redo, redoErr := c.ToRedo()
			if errors.Is(undoErr, ErrNothing) != (stands == 0) || stands > 0 && (o.Number != history[stands-1].Number || !newest) {
				t.Fatalf("seed %d: undo %d, %v", seed, o.Number, undoErr)
			}
			if errors.Is(redoErr, ErrNothing) != (stands == len(history)) || stands < len(history) && redo.Number != history[stands].Number {
				t.Fatalf("seed %d: redo %d, %v", seed, redo.Number, redoErr)
			}
			for i, l := range history {
				_, newest, err := c.Find(l.Number)
				if (err == nil) != (i < stands) || newest != (i == stands-1) {
					t.Fatalf("seed %d: landing %d of %d: %v, %v", seed, i, stands, newest, err)
				}
			}
			switch n := r.IntN(4); {
			case n == 1 && stands > 0:
				stands--
				o = Operation{Kind: Undo, Of: o.Number}
			case n == 2 && redoErr == nil:
				stands++
				o = Operation{Kind: Redo, Of: redo.Number}
			case n == 3 && stands > 0:
				i := r.IntN(stands)
				o = Operation{Kind: Revert, Of: history[i].Number}
				stands--
				history = slices.Delete(slices.Clone(history[:stands+1]), i, i+1)
			default:
				o = Operation{Kind: Land}
			}
			last := Operation{}
			if len(c) > 0 {
				last = c[len(c)-1]
			}
			o = Next(last, o)
			o.ID = name(1000 + o.Number)
			if o.Kind == Land {
				history = append(slices.Clone(history[:stands]), o)
				stands++
			}
			c = append(c, o)
		}
	}
}
