package runs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/ledger"
	"github.com/git-airlock/git-airlock/promote/record"
)

// TestRotatedConnections checks that a denial is in the record although its line was rotated away, and that the others are counted.
func TestRotatedConnections(t *testing.T) {
	dir := t.TempDir()
	w, err := ledger.Open(dir, "session")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range 10 {
		r := record.Egress{Kind: control.KindFlow, Name: "api.test"}
		if i == 2 {
			r = record.Egress{Kind: control.KindRefusal, Name: "evil.test", Reason: control.ReasonDenied}
		}
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	lines, lost, err := connections(dir, 1)
	if err != nil || len(lines) != 9 || lost != 0 {
		t.Errorf("%d lines, %d lost, %v", len(lines), lost, err)
	}
	content, err := os.ReadFile(filepath.Join(dir, control.LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	rows := bytes.SplitAfter(content, []byte("\n"))
	if err := os.WriteFile(filepath.Join(dir, control.LedgerFile), bytes.Join(rows[6:], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, lost, err = connections(dir, 1)
	if err != nil || len(lines) != 5 || lost != 4 || !lines[0].Denied() || lines[1].Seq != 7 { // without 2 and 4 to 6
		t.Errorf("%d lines, %d lost, %v", len(lines), lost, err)
	}
}

// TestSummedUp checks that a record with too many requests has all its hosts, bytes and denials.
func TestSummedUp(t *testing.T) {
	const requests, last = 60_000, 1000
	var all []record.Egress
	for i := range requests {
		r := record.Egress{V: control.Version, Seq: uint64(i + 1), Kind: control.KindRequest, Name: "api.test", Seen: control.SeenRequest,
			Path: fmt.Sprintf("/%0100d", i), Verdict: control.VerdictAllow, Status: 200}
		switch {
		case i == requests-1:
			r = record.Egress{V: control.Version, Seq: r.Seq, Kind: control.KindRefusal, Name: "evil.test", Reason: control.ReasonDenied}
		case i >= requests-last:
			r.Kind, r.Name, r.Path, r.Seen, r.Sent = control.KindFlow, "late.test", "", control.SeenOpaque, 7
		}
		all = append(all, r)
	}
	content, about, left, err := summedUp(all)
	if err != nil || left != 0 || len(content) > record.MaxFile || about.Cut == 0 {
		t.Fatalf("%d bytes, %d cut, %d left out, %v", len(content), about.Cut, left, err)
	}
	kept, err := record.DecodeLines[record.Egress](record.EgressName, content)
	if err != nil {
		t.Fatal(err)
	}
	count, sent := map[string]int{}, int64(0)
	for _, r := range kept {
		count[r.Name] += max(1, r.Count)
		sent += r.Sent
	}
	if count["api.test"] != requests-last || count["late.test"] != last-1 || count["evil.test"] != 1 || sent != 7*(last-1) {
		t.Errorf("%v, %d bytes sent", count, sent)
	}
}
