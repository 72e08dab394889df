package control

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func TestRulesAreKept(t *testing.T) {
	dir := t.TempDir()
	if r, err := ReadRules(dir); err != nil || r.Generation != 0 || r.Allow != nil || r.Learn {
		t.Errorf("without a file: %+v, %v", r, err)
	}
	want := Rules{
		V: Version, Generation: 7, Lockdown: true, Learn: true,
		Allow: []Rule{{Text: "*.a.test:22", Source: "config:3", Until: time.Unix(1<<31, 0).UTC()}}, Deny: []Rule{{Text: "b.test"}},
	}
	if err := WriteRules(dir, want); err != nil {
		t.Fatal(err)
	}
	if r, err := ReadRules(dir); err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, %v; want %+v", r, err, want)
	}
	for _, content := range []string{`{"v":2}`, `{`, ``} {
		if err := os.WriteFile(filepath.Join(dir, RulesFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := ReadRules(dir); err == nil {
			t.Errorf("%q is %+v", content, r)
		}
	}
}

func TestStateIsKept(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadState(dir); !os.IsNotExist(err) {
		t.Errorf("without a file: %v", err)
	}
	want := State{V: Version, Generation: 3, PID: 9, Flows: []Flow{{ID: 1, Name: "a.test", Port: 443}}}
	if err := WriteState(dir, want); err != nil {
		t.Fatal(err)
	}
	if s, err := ReadState(dir); err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, %v; want %+v", s, err, want)
	}
}

// TestSilenceEnds checks that the silence of a network does not grow after its holder was killed, or its machine lost power.
func TestSilenceEnds(t *testing.T) {
	dir, since := t.TempDir(), time.Now().Add(-time.Hour)
	state := State{Credentials: []CredentialUse{
		{Name: "waits", Known: true, Requests: 1, Since: since}, {Name: "short", Since: since.Add(45 * time.Second)}, {Name: "earlier", Since: since, Silent: 2 * time.Minute}}}
	if err := WriteState(dir, state); err != nil {
		t.Fatal(err)
	}
	written := since.Add(50 * time.Second)
	if err := os.Chtimes(filepath.Join(dir, StateFile), written, written); err != nil {
		t.Fatal(err)
	}
	check := func() {
		uses := LastUses(dir)
		for i, want := range []time.Duration{50 * time.Second, 0, 2 * time.Minute} {
			if u := uses[i]; u.Silence(time.Now()).Round(time.Second) != want || u.Known || !u.Ended {
				t.Errorf("%+v; want a silence of %s", u, want)
			}
		}
	}
	check()
	if err := EndState(dir); err != nil { // by the next holder, whose network does not come up
		t.Fatal(err)
	}
	check()
}

// TestDenied distinguishes refusals by a rule from others, which name the rule that allowed the connection.
func TestDenied(t *testing.T) {
	for reason, want := range map[string]bool{ReasonDenied: true, ReasonDeniedRequest: true, "the connection has ended": false, "": false} {
		if got := (Record{Kind: KindRefusal, Verdict: VerdictDeny, Rule: "a.test (config)", Reason: reason}).Denied(); got != want {
			t.Errorf("%q: %v", reason, got)
		}
	}
	if (Record{Kind: KindFlow, Reason: ReasonDenied}).Denied() {
		t.Error("a connection that a new rule ended counts as refused")
	}
}
