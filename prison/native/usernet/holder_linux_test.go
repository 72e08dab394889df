package usernet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/prison/egress/ledger"
	"github.com/git-airlock/git-airlock/prison/native/wire"
)

// linkedHolder returns a holder, and the end of its link that the network's process would have.
func linkedHolder(t *testing.T, dir string) (*holder, wire.Conn) {
	t.Helper()
	ours, theirs, err := wire.Pair()
	if err != nil {
		t.Fatal(err)
	}
	network, err := wire.FileConn(theirs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); network.Close() })
	h := newHolder(dir, "test", nil)
	h.link, h.linked = ours, true
	return h, network
}

func receive(t *testing.T, network wire.Conn) (o control.Order) {
	t.Helper()
	if _, err := network.Recv(&o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestHolderWritesRecords checks that a record is acknowledged only when the ledger contains it.
func TestHolderWritesRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "prison")
	h, network := linkedHolder(t, dir)
	report := control.Report{Write: true, Records: []control.Record{{Kind: control.KindRefusal, Name: "a.test"}, {Kind: control.KindRefusal, Name: "b.test"}}}
	h.handle(h.link, report)
	if w := receive(t, network).Written; w == nil || w.Records != 0 || w.Error == "" {
		t.Errorf("without a folder: %+v", w)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h.handle(h.link, report)
	if w := receive(t, network).Written; w == nil || w.Records != 2 || w.Error != "" {
		t.Errorf("%+v", w)
	}
	var names []string
	if _, err := ledger.Read(dir, func(r control.Record) bool {
		names = append(names, r.Name+" "+r.Session)
		return true
	}); err != nil || len(names) != 2 || names[0] != "a.test test" || names[1] != "b.test test" {
		t.Errorf("%q, %v", names, err)
	}
	h.ledger.Close()
	h.handle(h.link, report)
	if w := receive(t, network).Written; w == nil || w.Error == "" {
		t.Errorf("with a ledger that cannot be written: %+v", w)
	}
	if s, err := control.ReadState(dir); err != nil || s.Ledger == "" {
		t.Errorf("state %+v, %v", s, err)
	}
	h.handle(h.link, report)
	if w := receive(t, network).Written; w == nil || w.Error != "" {
		t.Errorf("the ledger is not opened anew: %+v", w)
	}
	h.end()
}

// TestHolderPassesRulesOn checks that a holder sends changed rules to the process.
func TestHolderPassesRulesOn(t *testing.T) {
	dir := t.TempDir()
	h, network := linkedHolder(t, dir)
	if o := h.first(); o.Rules == nil || o.Rules.Generation != 0 || o.Written == nil || o.Written.Error != "" {
		t.Errorf("first orders: %+v", o)
	}
	want := control.Rules{Generation: 3, Allow: []control.Rule{{Text: "a.test"}}}
	if err := control.WriteRules(dir, want); err != nil {
		t.Fatal(err)
	}
	h.refresh()
	if o := receive(t, network); o.Rules == nil || o.Rules.Generation != 3 || len(o.Rules.Allow) != 1 {
		t.Errorf("%+v", o)
	}
	h.handle(h.link, control.Report{State: &control.State{Generation: 3, Admitted: 1}})
	if s, err := control.ReadState(dir); err != nil || s.Generation != 3 || s.Error != "" || s.Admitted != 1 {
		t.Errorf("state %+v, %v", s, err)
	}
	if err := os.WriteFile(filepath.Join(dir, control.RulesFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.refresh()
	if s, err := control.ReadState(dir); err != nil || s.Generation != 3 || s.Error == "" {
		t.Errorf("state with a broken file: %+v, %v", s, err)
	}
	if h.rules.Generation != 3 {
		t.Error("a broken file replaces the rules")
	}
	h.end()
	if _, err := control.ReadState(dir); !os.IsNotExist(err) {
		t.Errorf("the state of a network that has ended: %v", err)
	}
}

// TestHolderPassesQuestionsOn checks that a question reaches the process, and that the answer stays in the state when a successor begins.
func TestHolderPassesQuestionsOn(t *testing.T) {
	dir := t.TempDir()
	h, network := linkedHolder(t, dir)
	asked, err := control.Ask(dir, control.State{})
	if err != nil {
		t.Fatal(err)
	}
	h.refresh()
	if o := receive(t, network); o.Asked != asked {
		t.Errorf("%+v, want the question %d", o, asked)
	}
	for _, r := range []control.State{{Asked: asked}, {}} { // the second one is of a successor before it has the question
		h.handle(h.link, control.Report{State: &r})
		if s, err := control.ReadState(dir); err != nil || s.Asked != asked {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if o := h.first(); o.Asked != asked {
		t.Errorf("the question of a successor is %d", o.Asked)
	}
	next, err := control.Ask(dir, control.State{Asked: asked})
	if h.refresh(); err != nil || next <= asked || receive(t, network).Asked != next {
		t.Errorf("%d after %d, %v", next, asked, err)
	}
	h.end()
}

// TestHolderReadsAgain checks that a value that a server has refused is read again from its source, if it has one.
func TestHolderReadsAgain(t *testing.T) {
	h, network := linkedHolder(t, t.TempDir())
	file := filepath.Join(h.dir, "key")
	if err := os.WriteFile(file, []byte("second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.secrets = []secret.Secret{{Name: "fixed", Value: "one"}, {Name: "late", Value: "first", Source: secret.Source{File: file}}}
	if values := h.first().Values; values["late"] != "first" || values["fixed"] != "one" {
		t.Errorf("%q", values)
	}
	h.handle(h.link, control.Report{Stale: "fixed"})
	h.handle(h.link, control.Report{Stale: "late"})
	if values := receive(t, network).Values; values["late"] != "second" || values["fixed"] != "one" {
		t.Errorf("%q", values)
	}
	if values := h.first().Values; values["late"] != "second" {
		t.Errorf("a successor gets %q", values)
	}
}

// TestValueIsKeptForSuccessor reads the new value of a credential while no process carries packets.
func TestValueIsKeptForSuccessor(t *testing.T) {
	h, _ := linkedHolder(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.linked = false
	h.secrets = []secret.Secret{{Name: "api", Source: secret.Source{File: file}, Value: "old"}}
	go h.readAgain("api") // readAgain pauses before it returns
	for begun := time.Now(); h.first().Values["api"] != "new"; time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("a successor gets %q", h.first().Values["api"])
		}
	}
}

// TestUsesOutliveTheNetwork checks that a network goes on counting after an earlier one, which has ended or was killed with its holder.
func TestUsesOutliveTheNetwork(t *testing.T) {
	dir := t.TempDir()
	h, _ := linkedHolder(t, dir)
	use := control.CredentialUse{Name: "a", Known: true, Requests: 7, Today: 3, Last: time.Now().UTC(), Status: 429}
	h.handle(h.link, control.Report{State: &control.State{Credentials: []control.CredentialUse{use}}})
	use.Known, use.Status = false, 0
	for _, end := range []func(){func() {}, h.end} {
		end()
		next, _ := linkedHolder(t, dir)
		if uses := next.first().Uses; len(uses) != 1 || uses[0] != use {
			t.Errorf("%+v, want %+v", uses, use)
		}
	}
	if _, err := control.ReadState(dir); !os.IsNotExist(err) {
		t.Errorf("a network counts as running: %v", err)
	}
}

// TestKilledHolder replaces a killed holder. The new one must read what values it can, record the missing ones, and accept those later.
func TestKilledHolder(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "key")
	rules := control.Rules{Generation: 1, Credentials: []control.Credential{{Name: "filed", Placeholder: "x"}, {Name: "typed", Placeholder: "y", Source: "env:TYPED"}}}
	uses := control.State{Credentials: []control.CredentialUse{{Name: "filed", Known: true}, {Name: "typed", Known: true}}}
	if err := errors.Join(os.WriteFile(file, []byte("value"), 0o600), control.WriteRules(dir, rules), control.WriteState(dir, uses)); err != nil {
		t.Fatal(err)
	}
	h := newHolder(dir, "s", []secret.Secret{{Name: "filed", Source: secret.Source{File: file}}})
	if _, err := control.ReadState(dir); !os.IsNotExist(err) {
		t.Errorf("the killed holder's network counts as running: %v", err)
	}
	if first := h.first(); first.Written.Records != 0 {
		t.Errorf("the next network must drop its first %d records", first.Written.Records)
	}
	if lost := lostRecords(t, dir); len(lost) != 1 {
		t.Errorf("the ledger says %q", lost)
	}
	h.recover()
	if all := h.first().Values; len(all) != 1 || all["filed"] != "value" {
		t.Errorf("values: %v", all)
	}
	record, err := os.ReadFile(filepath.Join(dir, control.LedgerFile))
	if err != nil || !strings.Contains(string(record), "the credential typed (env:TYPED) has no value") || strings.Contains(string(record), "credential filed") {
		t.Errorf("%q, %v", record, err)
	}
	h.supply([]secret.Secret{{Name: "typed", Value: "given"}})
	if all := h.first().Values; len(all) != 2 || all["typed"] != "given" {
		t.Errorf("values: %v", all)
	}
	if s, err := control.ReadState(dir); err != nil || !s.Credentials[0].Known || !s.Credentials[1].Known {
		t.Errorf("%+v, %v", s, err)
	}
}

// lostRecords returns the reasons of the records in a ledger that say that others may be missing.
func lostRecords(t *testing.T, dir string) (reasons []string) {
	t.Helper()
	if _, err := ledger.Read(dir, func(r control.Record) bool {
		if r.Verdict == control.VerdictLost {
			reasons = append(reasons, r.Reason)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return reasons
}

// TestLastRecords ends a holder whose process hands over its last records, or is killed before.
func TestLastRecords(t *testing.T) {
	for _, whole := range []bool{true, false} {
		dir := t.TempDir()
		h, network := linkedHolder(t, dir)
		h.first()
		h.linked = false
		served := make(chan struct{})
		go func() {
			h.serve(carrier{link: h.link, process: &os.Process{Pid: 1}})
			close(served)
		}()
		for linked := false; !linked; time.Sleep(time.Millisecond) {
			h.mu.Lock()
			linked = h.linked
			h.mu.Unlock()
		}
		go func() {
			var o control.Order
			network.Recv(&o)
			if whole && o.End {
				network.Send(control.Report{Write: true, Records: []control.Record{{Kind: control.KindFlow, Name: "a.test"}}})
				network.Send(control.Report{Last: true})
			}
			network.Close()
		}()
		h.finish()
		<-served
		h.end()
		if lost := lostRecords(t, dir); len(lost) != map[bool]int{false: 1}[whole] {
			t.Errorf("handed over: %v, %q", whole, lost)
		}
	}
}
