package pending

import (
	"context"
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
		q := New(func() time.Time { return now })
		q.Written(0, true)
		lines, counted := 0, 0
		drain := func() {
			for {
				records, _ := q.Unwritten()
				if len(records) == 0 {
					return
				}
				for _, r := range records {
					counted += max(1, r.Count)
				}
				lines += len(records)
				q.Written(len(records), true)
			}
		}
		for i := range attempts {
			now = now.Add(time.Minute / attempts)
			q.Refuse(control.Record{Kind: control.KindRefusal, Name: name(i), Time: now})
			if i%500 == 0 {
				drain()
			}
			if len(q.pending) > maxPending || len(q.refusals) > maxRefusals+1 {
				t.Fatalf("%s: %d records wait, %d are counted", what, len(q.pending), len(q.refusals))
			}
		}
		now = now.Add(2 * SameRefusal)
		drain()
		if counted != attempts || lines > 61*(maxRefusals+2) {
			t.Errorf("%s: %d lines count %d attempts", what, lines, counted)
		}
	}
}

// TestRefusedPaths refuses requests for different paths within a second. Each of the first has its own record, and a record of several
// has no path of one of them. The refusals of another host meanwhile have its name.
func TestRefusedPaths(t *testing.T) {
	now := time.Unix(0, 0)
	q := New(func() time.Time { return now })
	q.Written(0, true)
	request := func(i int) control.Record {
		return control.Record{Kind: control.KindRefusal, Name: "files.test", Method: "GET", Path: fmt.Sprintf("/secret%d", i)}
	}
	const paths = maxPaths + 10
	for i := range paths {
		q.Refuse(request(i))
	}
	q.Refuse(request(0))
	q.Refuse(control.Record{Kind: control.KindRefusal, Name: "other.test"})
	now = now.Add(SameRefusal)
	attempts := map[string]int{}
	records, _ := q.Unwritten()
	for _, r := range records {
		attempts[r.Name+r.Path] += max(1, r.Count)
	}
	if len(attempts) != maxPaths+2 || attempts["files.test"+control.OtherPaths] != 10 || attempts["files.test/secret0"] != 2 || attempts["files.test/secret9"] != 1 || attempts["other.test"] != 1 {
		t.Errorf("%v", attempts)
	}
}

// TestDenialsAmongRefusals checks that other refusals hide no host that a rule denies, and that too many of such hosts keep the rule.
func TestDenialsAmongRefusals(t *testing.T) {
	now := time.Unix(0, 0)
	q := New(func() time.Time { return now })
	q.Written(0, true)
	deny := func(name, rule string) {
		q.Refuse(control.Record{Kind: control.KindRefusal, Name: name, Rule: rule, Reason: control.ReasonDenied})
	}
	for i := range 2 * maxRefusals {
		q.Refuse(control.Record{Kind: control.KindRefusal, Name: fmt.Sprintf("n%d.test", i), Reason: control.ReasonNoRule})
	}
	deny("evil.test", "evil.test")
	for i := range 2 * maxRefusals {
		deny(fmt.Sprintf("n%d.evil.test", i), "*.evil.test")
	}
	now = now.Add(SameRefusal)
	attempts := map[string]int{}
	records, _ := q.Unwritten()
	for _, r := range records {
		if !r.Denied() {
			attempts["other"] += max(1, r.Count)
			continue
		}
		attempts[r.Rule] += max(1, r.Count)
		if r.Name == "" {
			attempts["unnamed"] += r.Count
		}
	}
	if attempts["evil.test"] != 1 || attempts["*.evil.test"] != 2*maxRefusals || attempts["unnamed"] != maxRefusals+1 || attempts["other"] != 2*maxRefusals {
		t.Errorf("%v", attempts)
	}
}

// TestRefusalsOfAFullJournal checks that no refusal is lost while nothing can be written, and that memory is bounded.
func TestRefusalsOfAFullJournal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody waits for room
	now := time.Unix(0, 0)
	q := New(func() time.Time { return now })
	if q.Admit(ctx) == nil {
		t.Error("a connection is admitted before the ledger has been heard of")
	}
	q.Written(0, true)
	for range maxPending {
		if err := q.Admit(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if q.Admit(ctx) == nil {
		t.Error("more connections are admitted than can be recorded")
	}
	q.Refuse(control.Record{Kind: control.KindRefusal, Name: "evil.test", Reason: control.ReasonDenied})
	if records, _ := q.Unwritten(); len(records) != 1 || !records[0].Denied() {
		t.Errorf("connections delay a denial: %+v", records)
	}
	q.Written(1, true)
	for range 100 {
		now = now.Add(SameRefusal)
		q.Refuse(control.Record{Name: "a.test"})
	}
	for range maxPending {
		q.End(control.Record{})
	}
	if n := len(q.pending); n != maxPending {
		t.Errorf("%d records wait", n)
	}
	q.Written(maxPending, true)
	now = now.Add(SameRefusal)
	if records, _ := q.Unwritten(); len(records) != 1 || records[0].Count != 100 {
		t.Errorf("%+v", records)
	}
}

// TestAlarmsOfAFullJournal adds alarms and records of rules while requests fill the queue. None is lost, and memory is bounded.
func TestAlarmsOfAFullJournal(t *testing.T) {
	q := New(time.Now)
	q.Written(0, true)
	for range maxPending {
		q.Add(control.Record{Kind: control.KindRequest})
	}
	const alarms = 3 * maxRare
	for range alarms {
		q.Add(control.Record{Kind: control.KindAlarm, Credential: "one"})
	}
	q.Add(control.Record{Kind: control.KindAlarm, Credential: "other"})
	q.Add(control.Record{Kind: control.KindPolicy})
	if n := len(q.pending); n != maxPending+maxRare {
		t.Errorf("%d records wait", n)
	}
	counts := map[string]int{}
	for records, _ := q.Unwritten(); len(records) > 0; records, _ = q.Unwritten() {
		for _, r := range records {
			counts[r.Kind+r.Credential] += max(1, r.Count)
		}
		q.Written(len(records), true)
	}
	if counts["request"] != maxPending || counts["alarmone"] != alarms || counts["alarmother"] != 1 || counts["policy"] != 1 {
		t.Errorf("%v", counts)
	}
	if q.rare != 0 || len(q.more) > 0 || q.Admit(t.Context()) != nil {
		t.Errorf("%d rare records wait, %v", q.rare, q.more)
	}
}

// TestAdmissionWaits lets a connection wait while the ledger is written late, until there is room.
func TestAdmissionWaits(t *testing.T) {
	q := New(time.Now)
	q.Written(0, true)
	for range maxPending {
		if err := q.Admit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for what, free := range map[string]func(){
		"a record is written":     func() { q.End(control.Record{}); q.Written(1, true) },
		"a connection is refused": q.Release,
	} {
		admitted := make(chan error, 1)
		go func() { admitted <- q.Admit(t.Context()) }()
		select {
		case err := <-admitted:
			t.Fatalf("%s: admitted without room: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
		free()
		if err := <-admitted; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	waits := make(chan error, 1)
	go func() { waits <- q.Admit(t.Context()) }()
	q.Written(0, false)
	if err := <-waits; err == nil {
		t.Error("a connection is admitted though the ledger cannot be written")
	}
}

// TestClose closes a queue with a connection and a refusal that came again. It is drained when both have their last records.
func TestClose(t *testing.T) {
	q := New(func() time.Time { return time.Unix(1, 0) })
	q.Written(0, true)
	if err := q.Admit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		q.Refuse(control.Record{Kind: control.KindRefusal, Name: "evil.test"})
	}
	if q.Drained() {
		t.Error("the queue is drained before it is closed")
	}
	q.Close()
	q.Refuse(control.Record{Kind: control.KindRefusal, Name: "late.test"})
	if q.Admit(t.Context()) == nil {
		t.Error("a connection is admitted")
	}
	counts := map[string]int{}
	for _, last := range []func(){func() {}, func() { q.End(control.Record{Name: "a.test"}) }} {
		if last(); q.Drained() {
			t.Errorf("drained after %v", counts)
		}
		records, _ := q.Unwritten()
		for _, r := range records {
			counts[r.Name] += max(1, r.Count)
		}
		q.Written(len(records), true)
	}
	if !q.Drained() || len(counts) != 2 || counts["evil.test"] != 3 || counts["a.test"] != 1 {
		t.Errorf("drained: %v, %v", q.Drained(), counts)
	}
}
