package events

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/review"
)

func read(t *testing.T, dir string) []record.Event {
	t.Helper()
	all, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSeveralWriters checks that no event is lost or torn while others append and rotate.
func TestSeveralWriters(t *testing.T) {
	dir := t.TempDir()
	const writers, each = 4, 300
	follow := Follow(dir)
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for n := range each {
				Append(dir, record.Event{Kind: record.EventLand, Text: fmt.Sprintf("%d/%d", w, n), Data: map[string]string{"x": strings.Repeat("x", 3000)}})
			}
		})
	}
	seen := map[string]bool{}
	next := func() {
		all, err := follow.Next()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if seen[e.Text] {
				t.Fatalf("%s twice", e.Text)
			}
			seen[e.Text] = true
		}
	}
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	for running := true; running; next() {
		select {
		case <-done:
			running = false
		default:
		}
	}
	if len(seen) != writers*each {
		t.Errorf("%d events followed, of %d", len(seen), writers*each)
	}
	if kept := read(t, dir); len(kept) != writers*each {
		t.Errorf("%d events after one rotation, of %d", len(kept), writers*each)
	}
	for range 1000 {
		Append(dir, record.Event{Text: strings.Repeat("y", maxText)})
	}
	if kept := read(t, dir); len(kept) < 400 || kept[0].Text[0] != 'y' {
		t.Errorf("%d events after more rotations", len(kept))
	}
	for _, name := range []string{logFile(dir), older(dir)} {
		if info, err := os.Stat(name); err != nil || info.Size() > maxFile+10<<10 || info.Mode() != 0o600 {
			t.Error(info, err)
		}
	}
}

// TestTornLine cuts the log anywhere, as a crash does. The next event must be read.
func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	Append(dir, record.Event{Text: "first"})
	Append(dir, record.Event{Text: "second"})
	whole, err := os.ReadFile(logFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if err := os.WriteFile(logFile(dir), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		Append(dir, record.Event{Text: "last"})
		all := read(t, dir)
		if len(all) == 0 || all[len(all)-1].Text != "last" {
			t.Fatalf("cut at %d: %v", cut, all)
		}
	}
}

// TestSinceAndBytes reads the events since a time. Their texts are valid and bounded.
func TestSinceAndBytes(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	for n := range 3 {
		Append(dir, record.Event{Time: at.Add(time.Duration(n) * time.Hour), Text: fmt.Sprintf("%d\xff%s", n, strings.Repeat("y", maxText))})
	}
	all, err := Read(dir)
	if err != nil || len(all) != 3 || !strings.HasPrefix(all[1].Text, "1\uFFFD") || len(all[1].Text) > maxText+10 {
		t.Errorf("%d events, %v", len(all), err)
	}
	Append(dir+"/missing", record.Event{}) // nothing to do
}

func TestCycle(t *testing.T) {
	dir := t.TempDir()
	before := ledger.Outcome{Inner: "a", Holds: []ledger.Hold{{Reason: ledger.Collision, Message: "m"}, {Reason: ledger.Policy, Message: "old"}}}
	after := ledger.Outcome{Inner: "b", Landed: 2, Onto: "c", Holds: []ledger.Hold{{Reason: ledger.Policy, Message: "new", Paths: []string{"p"}}, {Reason: ledger.WorkspaceFull}}}
	Cycle(dir, "s", before, before)
	if all := read(t, dir); len(all) != 0 {
		t.Error(all)
	}
	Cycle(dir, "s", before, after)
	var got []string
	for _, e := range read(t, dir) {
		if e.Kind == record.EventLand && (e.Text != "landed 2 commits up to c" || e.Data["commit"] != "c") {
			t.Errorf("landing: %+v", e)
		}
		got = append(got, fmt.Sprintf("%s %s %s", e.Level, e.Kind, e.Session))
	}
	want := []string{"info export s", "notice land s", "info hold-end s", "warning hold s", "warning limit s"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestActs checks what the log has of verdicts, and of landings that were taken back.
func TestActs(t *testing.T) {
	dir := t.TempDir()
	Verdict(dir, "s", review.Fix, "aaaaaaaaaaaaaaaa", "stock", "a test, please")
	for _, kind := range []operation.Kind{operation.Undo, operation.Redo, operation.Revert} {
		Moved(dir, "s", operation.Operation{Kind: kind, Of: 3, After: "cccccccccccccccc"})
	}
	Synced(dir, "s", "bbbbbbbbbbbbbbbb", 2)
	var got []string
	for _, e := range read(t, dir) {
		got = append(got, fmt.Sprintf("%s %s %s", e.Level, e.Kind, e.Text))
	}
	want := []string{"info verdict to be fixed by the agent: aaaaaaaaaaaa stock: a test, please", "notice undo undone: operation 3, and the branch is at cccccccccccc",
		"notice redo made again: operation 3, and the branch is at cccccccccccc", "notice undo reverted: operation 3, and the branch is at cccccccccccc",
		"info sync brought 2 paths to the agent, up to commit bbbbbbbbbbbb of yours"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestStoppedWriter appends while another process, which does not go on, has locked the log.
func TestStoppedWriter(t *testing.T) {
	dir := t.TempDir()
	other, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	Note(dir, "s", record.EventRun, "without a place")
	other.Close()
	Note(dir, "s", record.EventRun, "later")
	all, err := Read(dir)
	if err != nil || len(all) != 1 || all[0].Text != "later" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestNoRoom appends while the log's disk is full: the events follow, once each, with the next one for which there is room.
func TestNoRoom(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/dev/full", logFile(dir)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second", "first"} {
		Note(dir, "s", record.EventRun, text)
	}
	if err := os.Remove(logFile(dir)); err != nil {
		t.Fatal(err)
	}
	Retry(dir)
	Note(dir, "s", record.EventRun, "third")
	var got []string
	for _, e := range read(t, dir) {
		got = append(got, e.Text)
	}
	if want := []string{"first", "second", "third"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
