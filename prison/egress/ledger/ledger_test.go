package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

func open(t *testing.T, dir string, most int64) *Writer {
	t.Helper()
	w, err := Open(dir, "20261123-070000-0001")
	if err != nil {
		t.Fatal(err)
	}
	w.maxFile = most
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func all(t *testing.T, dir string) (records []control.Record, r Report) {
	t.Helper()
	r, err := Read(dir, func(r control.Record) bool { records = append(records, r); return true })
	if err != nil {
		t.Fatal(err)
	}
	return records, r
}

// sound checks a ledger that nothing has damaged.
func sound(t *testing.T, dir string) []control.Record {
	t.Helper()
	records, r := all(t, dir)
	if len(r.Damages) > 0 {
		t.Fatal(r.Damages)
	}
	return records
}

func TestRecordsAreReadAsWritten(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, maxFile)
	want := control.Record{
		Time: time.Date(2026, 11, 23, 7, 0, 0, 5e6, time.UTC), Session: "s", Kind: control.KindRequest, Via: control.ViaTAP, Proto: control.ProtoHTTP,
		Name: "files.test", Port: 80, Address: "192.0.2.1", Verdict: control.VerdictAllow, Rule: "files.test", Reason: "r",
		Seen: control.SeenRequest, Method: "GET", Path: "/a?token=secret", Status: 200, Credential: "c", Sent: 1, Received: 1 << 40, Millis: 3, Count: 2,
	}
	if err := w.Append(want, control.Record{Kind: control.KindFlow}); err != nil {
		t.Fatal(err)
	}
	want.V, want.Seq, want.Path = 1, 1, "/a"
	got := sound(t, dir)
	if len(got) != 2 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if second := got[1]; second.Seq != 2 || second.Session != w.session || second.Time.IsZero() || len(second.Prev) != 64 {
		t.Errorf("the second record is %+v", second)
	}
	info, err := os.Stat(filepath.Join(dir, control.LedgerFile))
	if err != nil || info.Mode() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

// TestClockIsSetBack writes records whose times go back, also with another writer. Their order is that of their numbers and hashes.
func TestClockIsSetBack(t *testing.T) {
	dir := t.TempDir()
	for hours := range 3 {
		w := open(t, dir, maxFile)
		if err := w.Append(control.Record{Kind: control.KindFlow, Time: time.Date(2026, 11, 23, 7-hours, 0, 0, 0, time.UTC)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range sound(t, dir) {
		if r.Seq != uint64(i+1) || r.Time.Hour() != 7-i {
			t.Errorf("record %d is %+v", i, r)
		}
	}
}

// TestRotation checks that a ledger has a bounded size, and that its records go on from one file and from one writer to the next.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	const most, n = 4 << 10, 400
	for i := range n {
		if i%50 == 0 { // as after a restart
			w := open(t, dir, most)
			defer w.Close()
			for range 50 {
				if err := w.Append(control.Record{Kind: control.KindFlow, Name: "files.test"}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != maxFiles {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Size() > most || info.Mode() != 0o600 {
			t.Error(e.Name(), info, err)
		}
	}
	records, r := all(t, dir)
	if len(r.Damages) > 0 || r.Last != n || records[0].Seq != n-uint64(len(records))+1 || records[len(records)-1].Seq != n {
		t.Errorf("%d records of %+v", len(records), r)
	}
}

// TestFailedRotation checks that a rotation that could not be made is tried again, and that nothing is lost.
func TestFailedRotation(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, 1<<10)
	blocked := filepath.Join(dir, numbered(maxFiles-1))
	if err := os.MkdirAll(filepath.Join(blocked, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	written := uint64(0)
	for ; written < 1000; written++ {
		if err := w.Append(control.Record{Kind: control.KindFlow}); err != nil {
			break
		}
	}
	if written == 1000 {
		t.Fatal("no rotation failed")
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(control.Record{Kind: control.KindFlow}); err != nil {
		t.Fatal(err)
	}
	records := sound(t, dir)
	if last := records[len(records)-1].Seq; last != written+1 {
		t.Errorf("the last record is %d of %d", last, written+1)
	}
}

// TestTornLine cuts a ledger anywhere, as a crash does, and goes on writing.
func TestTornLine(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		w := open(t, dir, 2<<10)
		for i := range 1 + random.IntN(20) {
			if err := w.Append(control.Record{Kind: control.KindFlow, Name: fmt.Sprintf("n%d.test", i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, control.LedgerFile)
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		cut := random.IntN(len(content) + 1)
		if err := os.Truncate(name, int64(cut)); err != nil {
			t.Fatal(err)
		}
		before := sound(t, dir)
		w = open(t, dir, 2<<10)
		if err := w.Append(control.Record{Kind: control.KindFlow, Name: "last.test"}); err != nil {
			t.Fatal(err)
		}
		after := sound(t, dir)
		whole := cut == 0 || content[cut-1] == '\n'
		if added := len(after) - len(before); whole && added != 1 || !whole && (added != 2 || after[len(after)-2].Kind != control.KindAlarm) {
			t.Errorf("seed %d: cut at %d of %d: %+v", seed, cut, len(content), after[len(before):])
		}
	}
}

// TestChangesAreFound changes one byte, or removes, repeats or moves one line. Only the change of the last line can stay unseen:
// no line after it carries its hash.
func TestChangesAreFound(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, maxFile)
	for i := range 12 {
		if err := w.Append(control.Record{Kind: control.KindFlow, Name: fmt.Sprintf("n%d.test", i)}); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(dir, control.LedgerFile)
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
	last := len(lines) - 1
	lines[last] = append(bytes.Clone(lines[last]), '\n')
	check := func(what string, changed []byte) {
		t.Helper()
		if err := os.WriteFile(name, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := Verify(dir); err != nil || len(r.Damages) == 0 {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
	for at := 0; at < len(content)-len(lines[last]); at += 7 {
		changed := bytes.Clone(content)
		changed[at] ^= 1
		check(fmt.Sprint("byte ", at), changed)
	}
	for i := range last {
		check(fmt.Sprint("without line ", i), slices.Concat(slices.Concat(lines[:i]...), slices.Concat(lines[i+1:]...)))
		check(fmt.Sprint("twice line ", i), slices.Concat(slices.Concat(lines[:i+1]...), slices.Concat(lines[i:]...)))
		moved := slices.Clone(lines)
		moved[i], moved[i+1] = moved[i+1], moved[i]
		check(fmt.Sprint("moved line ", i), slices.Concat(moved...))
	}
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	sound(t, dir)
}

func TestFollow(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, 1<<10) // rotates while it is read
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const n = 12
	if err := w.Append(control.Record{Kind: control.KindFlow}, control.Record{Kind: control.KindFlow}); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	next := uint64(2)
	err := Follow(ctx, dir, 1, func(r control.Record) error {
		if r.Seq != next {
			return fmt.Errorf("record %d in the place of %d", r.Seq, next)
		}
		if next++; r.Seq == n {
			return enough
		}
		return w.Append(control.Record{Kind: control.KindFlow}) // each makes the next
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, maxFile)
	if err := w.Reserve(100); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, control.LedgerFile)); err != nil || info.Size() != 0 {
		t.Error("room counts as content", info, err)
	}
	if err := w.Append(control.Record{Kind: control.KindFlow}); err != nil {
		t.Fatal(err)
	}
	w.file.Close() // from now on each write fails
	for range 2 {
		if err := w.Append(control.Record{Kind: control.KindFlow}); err == nil {
			t.Error("written to a closed file")
		}
	}
	if got := sound(t, dir); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	w.broken = os.ErrClosed // the clean-up has nothing to close
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, maxFile)
	worst := strings.Repeat("\x01\xff", maxText)
	r := control.Record{Kind: control.KindRefusal, Session: worst, Via: worst, Proto: worst, Name: worst, Address: worst, Verdict: worst, Rule: worst, Reason: worst,
		Seen: worst, Method: worst, Path: worst, Credential: worst}
	if err := w.Append(r); err != nil {
		t.Fatal(err)
	}
	if got := sound(t, dir); len(got) != 1 || len(got[0].Name) > maxText || len(got[0].Path) > maxText {
		t.Errorf("%+v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, control.LedgerFile), append(bytes.Repeat([]byte("x"), 5*maxLine), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if records, r := all(t, dir); len(records) != 0 || len(r.Damages) != 1 {
		t.Errorf("%d records, %+v", len(records), r)
	}
	again := open(t, dir, maxFile)
	if err := again.Append(control.Record{Kind: control.KindFlow}); err != nil {
		t.Fatal(err)
	}
	if records, r := all(t, dir); len(records) != 1 || len(r.Damages) != 1 {
		t.Errorf("%d records, %+v", len(records), r)
	}
}

func TestNoLedger(t *testing.T) {
	if records, r := all(t, t.TempDir()); len(records) != 0 || len(r.Damages) != 0 || r.Last != 0 {
		t.Error(records, r)
	}
}

// FuzzRead reads any file as a ledger, and writes to it: what is written must be read, whatever was there.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"v":1,"seq":1,"time":"2026-11-23T07:00:00Z","kind":"flow","prev":""}`+"\n"), []byte{})
	f.Add([]byte("{}\n\n"), []byte(`{"v":1,"seq":18446744073709551615,"kind":"flow"}`+"\n"))
	f.Add(bytes.Repeat([]byte("a"), maxLine+10), []byte("{"))
	f.Fuzz(func(t *testing.T, newest, older []byte) {
		dir := t.TempDir()
		for n, content := range [][]byte{newest, older} {
			if err := os.WriteFile(filepath.Join(dir, numbered(n)), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := all(t, dir)
		w := open(t, dir, maxFile)
		if err := w.Append(control.Record{Kind: control.KindFlow, Name: "new.test"}); err != nil {
			t.Fatal(err)
		}
		after, r := all(t, dir)
		if added := len(after) - len(before); added < 1 || added > 2 || after[len(after)-1].Name != "new.test" || len(r.Damages) > maxDamages {
			t.Errorf("%d records, then %d: %+v", len(before), len(after), r)
		}
	})
}
