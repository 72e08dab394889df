package egress

import (
	"fmt"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// TestFloodOfRefusals refuses 100,000 attempts in a minute, of names that are all different, or all the same.
func TestFloodOfRefusals(t *testing.T) {
	const attempts = 100_000
	for what, name := range map[string]func(int) string{
		"different": func(i int) string { return fmt.Sprintf("n%d.test", i) },
		"same":      func(int) string { return "evil.test" },
	} {
		now := time.Unix(0, 0)
		j := newJournal(func() time.Time { return now })
		j.written(0, true)
		lines, counted := 0, 0
		drain := func() {
			for {
				records, _ := j.unwritten()
				if len(records) == 0 {
					return
				}
				for _, r := range records {
					counted += max(1, r.Count)
				}
				lines += len(records)
				j.written(len(records), true)
			}
		}
		for i := range attempts {
			now = now.Add(time.Minute / attempts)
			j.refuse(control.Record{Kind: control.KindRefusal, Name: name(i), Time: now})
			if i%500 == 0 {
				drain()
			}
			if len(j.pending) > maxPending || len(j.refusals) > maxRefusals+1 {
				t.Fatalf("%s: %d records wait, %d are counted", what, len(j.pending), len(j.refusals))
			}
		}
		now = now.Add(2 * sameRefusal)
		drain()
		if counted != attempts || lines > 61*(maxRefusals+2) {
			t.Errorf("%s: %d lines count %d attempts", what, lines, counted)
		}
	}
}

// TestRefusalsOfAFullJournal wants none to be forgotten while nothing can be written, in bounded memory.
func TestRefusalsOfAFullJournal(t *testing.T) {
	now := time.Unix(0, 0)
	j := newJournal(func() time.Time { return now })
	if j.admit() == nil {
		t.Error("a connection is admitted before the ledger has been heard of")
	}
	j.written(0, true)
	for range maxPending {
		if err := j.admit(); err != nil {
			t.Fatal(err)
		}
	}
	if j.admit() == nil {
		t.Error("more connections are admitted than can be recorded")
	}
	for range 100 {
		now = now.Add(sameRefusal)
		j.refuse(control.Record{Name: "a.test"})
	}
	for range maxPending {
		j.end(control.Record{})
	}
	if n := len(j.pending); n != maxPending {
		t.Errorf("%d records wait", n)
	}
	j.written(maxPending, true)
	now = now.Add(sameRefusal)
	if records, _ := j.unwritten(); len(records) != 1 || records[0].Count != 100 {
		t.Errorf("%+v", records)
	}
}
