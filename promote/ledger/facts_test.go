package ledger

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// TestFacts checks that the newest note counts, that a removal and a note without a network keep what was reached, that a torn line hides no
// other, and that facts about which evidence was made are gone.
func TestFacts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Read(dir, Pair{Inner: name("0"), Outer: name("1")}, name("1"), "")
	if err != nil {
		t.Fatal(err)
	}
	note := func(outer, policy string) quarantine.Note {
		return quarantine.Note{Commit: name(outer), Text: "landed by airlock x\n\nAirlock-Base: x\nAirlock-Policy: " + policy + "\n"}
	}
	reached := []quarantine.Note{{Commit: name("2"), Text: "Airlock-Reached: a\n"}, {Commit: name("3"), Text: "Airlock-Reached: a\n"}}
	err = l.KeepFacts([]quarantine.Note{note("2", "clean"), note("3", "clean"), note("4", "clean")}, reached)
	torn, failed := os.OpenFile(factsFile(dir), os.O_APPEND|os.O_WRONLY, 0)
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	_, err = torn.WriteString(`{"v":1,"commit":"` + string(name("4")) + `","note":"Airlock-Po`)
	err = errors.Join(err, torn.Close(), l.KeepFacts([]quarantine.Note{note("2", "flagged x"), {Commit: name("3")}}, nil), l.KeepFacts(nil, nil))
	check := func(want map[string][2]string) {
		t.Helper()
		facts, failed := ReadFacts(dir)
		if err = errors.Join(err, failed); err != nil || len(facts) != len(want) {
			t.Fatalf("%v, %v", err, facts)
		}
		for outer, texts := range want {
			if f := facts[name(outer)]; f.Note != texts[0] || f.Reached != texts[1] {
				t.Errorf("%s: %+v", outer, f)
			}
		}
	}
	check(map[string][2]string{"2": {"Airlock-Policy: flagged x\n", "Airlock-Reached: a\n"}, "3": {"", "Airlock-Reached: a\n"}, "4": {"Airlock-Policy: clean\n", ""}})
	err = ForgetFacts(dir, map[gitops.OID]bool{name("4"): true})
	check(map[string][2]string{"2": {"Airlock-Policy: flagged x\n", "Airlock-Reached: a\n"}, "3": {"", "Airlock-Reached: a\n"}})

	// A large file loses the oldest facts about commits that are neither pending nor landed.
	if err := errors.Join(err, l.SetTail([]Pair{{Inner: name("a"), Outer: name("2")}})); err != nil {
		t.Fatal(err)
	}
	var many []quarantine.Note
	for range factsKept {
		many = append(many, quarantine.Note{Commit: gitops.OID(strings.Repeat("e", 36) + fmt.Sprintf("%04x", len(many))), Text: "Airlock-Without: " + strings.Repeat("x", 3000) + "\n"})
	}
	err = errors.Join(l.KeepFacts(many, nil), l.KeepFacts([]quarantine.Note{note("5", "clean")}, nil))
	facts, failed := ReadFacts(dir)
	if err = errors.Join(err, failed); err != nil || len(facts) != factsKept+2 || facts[name("2")].Note == "" || facts[name("5")].Note == "" || facts[name("3")].Commit != "" {
		t.Errorf("%v, %d facts", err, len(facts))
	}
	if err := os.WriteFile(factsFile(dir), []byte("{\"v\":2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFacts(dir); err == nil || !strings.Contains(err.Error(), "its version is 2") {
		t.Error(err)
	}
}
