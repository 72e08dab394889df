package network

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/ledger"
	promoted "github.com/git-airlock/git-airlock/promote/ledger"
)

func TestNote(t *testing.T) {
	dir := t.TempDir()
	n := Notes{Airlock: "7f3a", Session: "s", Dir: dir}
	if got, want := n.Note(0, n.Newest(), nil), "network of airlock 7f3a: 0 hosts reached, 0 refused\n\nAirlock-Version: 1\nAirlock-Session: s\n"; got != want {
		t.Errorf("without a ledger: %q", got)
	}
	w, err := ledger.Open(dir, "7f3a")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	flow := control.Record{Kind: control.KindFlow, Name: "files.test", Port: 443, Verdict: control.VerdictAllow, Sent: 10, Received: 200}
	begun, failed, request, refused := flow, flow, flow, flow
	begun.Verdict, failed.Verdict, failed.Name = control.VerdictBegun, control.VerdictFailed, "down.test"
	request.Kind, request.Name, request.Port = control.KindRequest, "plain.test", 80
	refused.Kind, refused.Name, refused.Reason, refused.Count = control.KindRefusal, "evil\x1b[2J\n.test", "no rule\nallows it", 7
	if err := w.Append(flow, control.Record{Kind: control.KindPolicy}, flow, begun, failed, request, refused,
		control.Record{Kind: control.KindAlarm, Reason: "x", Count: 3}); err != nil {
		t.Fatal(err)
	}
	want := `network of airlock 7f3a: 2 hosts reached, 1 refused

Airlock-Version: 1
Airlock-Session: s
Airlock-Records: 2-8
Airlock-Reached: files.test:443 count=1 begun=1 sent=10 received=200
Airlock-Reached: down.test:443 count=0 failed=1
Airlock-Reached: plain.test:80 count=0 requests=1
Airlock-Refused: evil\u001b[2J\n.test:443 count=7 reason=no rule\nallows it
Airlock-Rule-Changes: 1
Airlock-Alarms: 3
`
	if got := n.Note(1, n.Newest(), nil); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	open := []promoted.Connection{{Host: "api.test:22", Sent: 4, Received: 5000}, {Host: "files.test:443", Received: 7}, {Host: "files.test:443", Received: 200, Ended: true},
		{Host: "late.test:22", Received: 3, Ended: true}}
	for _, change := range [][2]string{
		{"2 hosts", "4 hosts"}, {"2-8\n", "2-8\nAirlock-Reached: api.test:22 count=0 open=1 sent=4 received=5000\n"},
		{"begun=1 sent=10 received=200\n", "begun=1 open=1 sent=10 received=207\nAirlock-Reached: late.test:22 count=0 open=1 received=3\n"},
	} {
		want = strings.Replace(want, change[0], change[1], 1)
	}
	if got := n.Note(1, n.Newest(), open); got != want {
		t.Errorf("with open connections: %s\nwant %s", got, want)
	}
}

// TestNoteIsBounded makes a note of many hosts with long names.
func TestNoteIsBounded(t *testing.T) {
	dir := t.TempDir()
	w, err := ledger.Open(dir, "7f3a")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const hosts = 300
	for i := range hosts {
		r := control.Record{Kind: control.KindRefusal, Name: fmt.Sprintf("%d%s", i, strings.Repeat("\x01", 1000)), Port: 443, Reason: strings.Repeat("\x02", 1000)}
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	text := Notes{Dir: dir}.Note(0, hosts, nil)
	if strings.Count(text, "Airlock-Refused: ") != notedHosts || !strings.Contains(text, "Airlock-More-Refused: 200\n") || len(text) > 400<<10 {
		t.Errorf("%d bytes", len(text))
	}
	if err := os.Rename(filepath.Join(dir, control.LedgerFile), filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	if text := (Notes{Dir: dir}).Note(0, hosts, nil); !strings.Contains(text, "Airlock-Lost-Records: 300\n") {
		t.Errorf("records that are gone: %q", text)
	}
}

// TestFetched lists the hosts from which something came without a rule, those to which such a connection is open, and what is not
// known.
func TestFetched(t *testing.T) {
	dir := t.TempDir()
	n := Notes{Airlock: "7f3a", Session: "s", Dir: dir}
	w, err := ledger.Open(dir, "7f3a")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	unnamed := control.Record{Kind: control.KindFlow, Name: "wide.test", Port: 443, Verdict: control.VerdictAllow, Sent: 10, Received: 200}
	named, silent, failed, address := unnamed, unnamed, unnamed, unnamed
	named.Name, named.Rule = "files.test", "files.test (--allow)"
	silent.Name, silent.Received = "silent.test", 0
	failed.Name, failed.Verdict, failed.Received = "down.test", control.VerdictFailed, 0
	address.Name, address.Address = "", "192.0.2.7"
	killed := control.Record{Kind: control.KindAlarm, Verdict: control.VerdictLost, Reason: "killed"}
	if err := w.Append(named, silent, failed, control.Record{Kind: control.KindPolicy, Rule: "generation 2"}, unnamed, address, unnamed, killed, killed); err != nil {
		t.Fatal(err)
	}
	flows := []control.Flow{{Name: "files.test", Port: 443, Rule: "files.test"}, {Name: "open.test", Port: 80},
		{Name: "silent.test", Port: 22, Ended: true}, {Name: "files.test", Port: 22, Rule: "files.test", Got: 3, Ended: true}}
	if err := control.WriteState(dir, control.State{Flows: flows}); err != nil {
		t.Fatal(err)
	}
	connections, err := n.Open(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	open := "a connection to open.test:80 is open, which no rule names"
	for _, c := range []struct {
		after, upTo uint64
		want        []string
	}{
		{0, 4, []string{open}},
		{0, 7, []string{"something came from wide.test:443, which no rule names", "something came from 192.0.2.7:443, which no rule names", open}},
		{7, 9, []string{"records of the network may be lost: killed", open}},
		{9, 11, []string{"2 records of the network are lost", open}},
	} {
		if got := n.Fetched(c.after, c.upTo, connections); !slices.Equal(got, c.want) {
			t.Errorf("%d-%d: %q, want %q", c.after, c.upTo, got, c.want)
		}
	}
}

// TestFetchedUnwritten reads a state that is old, and then a newer one. The newer one has a connection that has ended and that has no record yet.
func TestFetchedUnwritten(t *testing.T) {
	dir := t.TempDir()
	n := Notes{Airlock: "7f3a", Session: "s", Dir: dir}
	if err := control.WriteState(dir, control.State{Asked: 1}); err != nil {
		t.Fatal(err)
	}
	go func() { // the holder
		for control.ReadAsked(dir) == 0 && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		control.WriteState(dir, control.State{Asked: control.ReadAsked(dir), Flows: []control.Flow{{Name: "evil.test", Port: 22, Got: 18, Ended: true}}})
	}()
	open, err := n.Open(t.Context(), true)
	if got, want := n.Fetched(0, 0, open), []string{"something came from evil.test:22, which no rule names"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	silent, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if _, err := n.Open(silent, true); err == nil {
		t.Error("a network that does not answer is without an error")
	}
	if err := control.EndState(dir); err != nil {
		t.Fatal(err)
	}
	if open, err := n.Open(t.Context(), true); len(open) > 0 || err != nil {
		t.Errorf("without a network: %v, %v", open, err)
	}
}
