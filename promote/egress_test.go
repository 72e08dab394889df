package promote_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// numbers is a record of a network of which only the number of entries is known.
type numbers uint64

func (n *numbers) Newest() uint64 { return uint64(*n) }

func (*numbers) Placeholders() []string { return nil }

func (*numbers) Note(after, upTo uint64, open []ledger.Connection) string {
	text := fmt.Sprintf("%d-%d", after+1, upTo)
	for _, c := range open {
		text += "+" + c.Host
	}
	return text + "\n"
}

// Open returns a connection while the number of entries is 8.
func (n *numbers) Open(context.Context, bool) (open []ledger.Connection, err error) {
	if *n == 8 {
		open = append(open, ledger.Connection{Host: "open.test:22"})
	}
	return open, nil
}

func (*numbers) Fetched(after, upTo uint64, _ []ledger.Connection) (found []string) {
	if after < 10 && upTo >= 10 {
		found = append(found, "entry 10")
	}
	return found
}

// TestEgressNotes gives each landed commit the part of the record that belongs to it. No part is lost or counted twice when a
// commit waits, is built again, or is replaced by the agent.
func TestEgressNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	var record numbers
	restart := func() {
		w.engine = newEngine(w.Repository, w.record, w.inner)
		w.engine.Egress = &record
	}
	restart()
	want := func(texts string) {
		t.Helper()
		var got []string
		for _, commit := range strings.Fields(w.git("log", "--reverse", "--topo-order", "--format=%H", string(w.record.Base)+".."+w.record.Branch)) {
			text, err := tryGit(w.Top, "", "notes", "--ref="+promote.EgressRef, "show", commit)
			if err != nil {
				text = "none"
			}
			got = append(got, strings.TrimSpace(text))
		}
		if strings.Join(got, " ") != texts {
			t.Fatalf("the notes are %q, want %q", got, texts)
		}
	}
	record = 3
	w.commits("one", "one", "1")
	w.cycle()
	want("1-3")
	record = 5
	w.commits("two", "two", "2")
	w.commits("three", "three", "3")
	w.cycle()
	want("1-3 4-5 4-5")
	restart()
	w.commits("four", "four", "4") // nothing was recorded meanwhile
	w.cycle()
	want("1-3 4-5 4-5 6-5")

	// A commit that waits is built again on the user's commit, and keeps its window, with the connection that was open at its end.
	w.git("config", "airlock.autoLand", "false")
	record = 8
	w.commits("five", "five", "5")
	w.cycle()
	w.git("commit", "-q", "--allow-empty", "-m", "mine")
	record = 9
	restart()
	w.cycle()
	// The agent replaces a waiting commit: its window goes to the next one.
	record = 12
	w.commits("six", "six", "6")
	w.cycle()
	record = 15
	w.agent("commit", "-q", "--amend", "-m", "another six")
	w.cycle()
	w.git("config", "airlock.autoLand", "true")
	w.cycle()
	want("1-3 4-5 4-5 6-5 none 6-8+open.test:22 9-15")
	if n := len(strings.Fields(w.git("notes", "--ref="+promote.EgressRef, "list"))); n != 2*6 {
		t.Errorf("%d fields for six notes", n)
	}
	if before := w.ref(promote.EgressRef); before == gitops.OID("") {
		t.Error("no ref")
	}
	w.nothingLeft()
}

// TestFetched holds the commits in whose part of the record something came from a host that no rule names, and only these.
func TestFetched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	var record numbers
	w.engine.Egress = &record
	w.git("config", "airlock.policy.fetched", "hold")
	record = 9
	w.commits("before", "before", "1")
	w.cycle()
	record = 12
	w.commits("after", "after", "2")
	w.cycle()
	record = 22
	w.commits("next", "next", "3")
	held := w.cycle().Of(ledger.Policy)
	if got := w.subjects(); got != "next before" || len(held) != 1 || !strings.HasSuffix(held[0].Message, "(after); fetched: entry 10") {
		t.Fatalf("%q has landed, %v", got, held)
	}
	// Under other rules the waiting commit has the same part.
	w.engine = newEngine(w.Repository, w.record, w.inner)
	w.engine.Egress = &record
	w.git("config", "airlock.policy.secret", "flag")
	record = 30
	if again := w.cycle().Of(ledger.Policy); len(again) != 1 || again[0].Message != held[0].Message {
		t.Fatalf("%v after %v", again, held)
	}
	w.git("config", "airlock.policy.fetched", "flag")
	w.cycle()
	if got := w.subjects(); got != "after next before" {
		t.Fatalf("%q has landed", got)
	}
}
