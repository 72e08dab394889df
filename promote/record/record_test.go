package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

var begun = time.Date(2026, 11, 25, 10, 0, 0, 5e6, time.UTC)

func pointer[T any](v T) *T { return &v }

func id(n int) gitops.OID { return gitops.OID(fmt.Sprintf("%040x", n)) }

// absent returns a reason for each file that is not there.
func absent(files map[string][]byte) map[string]string {
	reasons := map[string]string{}
	for _, name := range Names() {
		if files[name] == nil {
			reasons[name] = "not in this test"
		}
	}
	return reasons
}

// example returns a record in which every file has a line.
func example(t *testing.T) Run {
	t.Helper()
	must := func(content []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	files := map[string][]byte{
		EventsName: must(EncodeLines([]Event{{Time: begun, Level: Notice, Kind: EventLand, Session: "s", Run: 3, Text: "<1 commit>", Data: map[string]string{"commit": string(id(7))}}})),
		ExecName: must(EncodeLines([]Exec{
			{Time: begun, Seq: 1, PID: 7, PPID: 3, Cwd: "/workspace", Path: "./t", Argv: []string{"./t", "a b"}, Exe: "/workspace/t", Exit: pointer(0), Millis: pointer(int64(12)), Top: true},
			{Time: begun, Seq: 2, Deny: pointer("curl*"), Disputed: true, Cut: true},
		})),
		EgressName:    must(EncodeLines([]Egress{{V: 1, Seq: 1, Time: begun, Kind: "refusal", Name: "x.test", Port: 443}})),
		ResourcesName: EncodeSamples([]Sample{{1000, 20, 1 << 30, 5, -1, 4}, {2000, 30, 1, 2, 3, 4}}),
		TerminalName:  must(EncodeCast(CastHeader{Width: 80, Height: 24, Timestamp: 5}, []CastEvent{{time.Second / 4, "a\r\n"}, {time.Second, "\x1b[1m"}})),
		CommitsName: EncodeCommits([]Commit{{State: Landed, Inner: id(1), Outer: id(2), Tree: id(3), Subject: "a subject"},
			{State: Inner, Inner: id(4)}}),
		StdoutName: []byte("out\n"),
	}
	r, err := New(Manifest{Session: "20261125T100000Z-7f3a", ID: "7f3a", Run: 3, Previous: id(9), Kind: Launched, Argv: []string{"claude", "-p", "a\nb"},
		Started: begun, Ended: begun.Add(time.Minute), Exit: pointer(0), Status: CompletedHeld, Landed: 4, Held: []Hold{{Reason: "collision"}},
		Files: map[string]File{StdoutName: {Cut: 5, Note: "the beginning"}}, Absent: absent(files)}, files)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRoundTrip(t *testing.T) {
	r := example(t)
	again, err := Open(r.Files)
	if err != nil {
		t.Fatal(err)
	}
	if faults := again.Verify(); len(faults) > 0 {
		t.Error(faults)
	}
	if again.Manifest.Files[StdoutName] != (File{4, 5, "the beginning"}) || again.Manifest.Run != 3 || *again.Manifest.Exit != 0 {
		t.Errorf("%+v", again.Manifest)
	}
	execs, err := again.Execs()
	if err != nil || len(execs) != 2 || !execs[0].Top || *execs[1].Deny != "curl*" || execs[1].Exit != nil {
		t.Error(execs, err)
	}
	events, err := again.Events()
	if err != nil || len(events) != 1 || events[0].Text != "<1 commit>" || !events[0].Time.Equal(begun) {
		t.Error(events, err)
	}
	egress, err := again.Egress()
	if err != nil || len(egress) != 1 || egress[0].Name != "x.test" {
		t.Error(egress, err)
	}
	samples, err := again.Samples()
	if err != nil || !reflect.DeepEqual(samples, []Sample{{1000, 20, 1 << 30, 5, -1, 4}, {2000, 30, 1, 2, 3, 4}}) {
		t.Error(samples, err)
	}
	terminal, err := again.Text(TerminalName)
	if err != nil {
		t.Fatal(err)
	}
	header, cast, err := DecodeCast(terminal)
	if err != nil || header.Width != 80 || !reflect.DeepEqual(cast, []CastEvent{{time.Second / 4, "a\r\n"}, {time.Second, "\x1b[1m"}}) {
		t.Error(header, cast, err)
	}
	commits, err := again.Commits()
	if err != nil || len(commits) != 2 || commits[0].Tree != id(3) || commits[0].Subject != "a subject" || commits[1].Outer != "" {
		t.Error(commits, err)
	}
	if _, err := again.Text(StderrName); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "not in this test") {
		t.Error(err)
	}
}

// TestScanExec compares the fast reader of programs with package json, in lines as the watcher writes them and in changed ones.
func TestScanExec(t *testing.T) {
	lines, err := EncodeLines([]Exec{
		{Time: begun, Seq: 1, PID: 7, PPID: 3, Cwd: "/workspace", Path: "./t", Argv: []string{"./t", "a b", ""}, Exe: "/workspace/t", Exit: pointer(0), Millis: pointer(int64(12)), Top: true},
		{Time: begun.In(time.FixedZone("", 3600)), Seq: 1 << 50, Argv: []string{}, Deny: pointer("curl*"), Disputed: true, Cut: true},
		{Time: begun, Exit: pointer(137), Path: "é\\"},
	})
	if err != nil {
		t.Fatal(err)
	}
	lines = append(bytes.ReplaceAll(lines, []byte(`"exe":""`), []byte(`"exe":null`)), lines...)
	all := bytes.Split(bytes.TrimSpace(lines), []byte("\n"))
	read := func(line []byte) (ok bool) {
		scanned, ok := scanExec(line)
		var want Exec
		if err := json.Unmarshal(line, &want); ok && (err != nil || !reflect.DeepEqual(scanned, want)) {
			t.Fatalf("%s: %+v, not %+v, %v", line, scanned, want, err)
		}
		return ok
	}
	for i, line := range all {
		if ok := read(line); ok != (i%3 < 2) {
			t.Errorf("%s: %v", line, ok)
		}
	}
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 3))
		line := bytes.Clone(all[r.IntN(len(all))])
		for range 1 + r.IntN(2) {
			const characters = "\"\\,:[]{}0-1ntf. \x00é"
			if at := r.IntN(len(line)); r.IntN(2) == 0 {
				line[at] = characters[r.IntN(len(characters))]
			} else {
				line = slices.Delete(line, at, at+1)
			}
		}
		read(line)
	}
}

// TestMessage checks the commit's message in the form that plain git reads.
func TestMessage(t *testing.T) {
	m := example(t).Manifest
	want := `run 3: claude -p 'a\nb' -> exit 0, 4 landed, held: collision` + "\n\nAirlock-Run-Version: 1\nAirlock-Previous: " + string(id(9)) + "\n"
	if got := string(m.Message()); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	m.Argv, m.Exit, m.Signal = []string{strings.Repeat("x", 1000)}, nil, "SIGKILL"
	if got := m.Subject(); len(got) > 120 || !strings.Contains(got, "... -> SIGKILL") {
		t.Error(got)
	}
}

// TestSignalInManifest checks that a manifest has the signal, and null for none.
func TestSignalInManifest(t *testing.T) {
	for _, signal := range []Signal{"", "SIGKILL"} {
		content, err := json.Marshal(Manifest{Signal: signal})
		var again Manifest
		if err == nil {
			err = json.Unmarshal(content, &again)
		}
		if want := map[Signal]string{"": `"signal":null`, "SIGKILL": `"signal":"SIGKILL"`}[signal]; err != nil || !strings.Contains(string(content), want) || again.Signal != signal {
			t.Errorf("%s, %v", content, err)
		}
	}
}

// TestFlippedBits checks that a bit flipped in any file, and a file removed, added or renamed, is found.
func TestFlippedBits(t *testing.T) {
	whole := example(t)
	names := slices.Sorted(maps.Keys(whole.Files))
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		name := names[r.IntN(len(names))]
		files := maps.Clone(whole.Files)
		content := bytes.Clone(files[name])
		content[r.IntN(len(content))] ^= 1 << r.IntN(8)
		files[name] = content
		if faults := (Run{Files: files}).Verify(); len(faults) == 0 {
			t.Fatalf("seed %d: a changed bit in %s is not found", seed, name)
		}
	}
	for _, name := range names {
		files := maps.Clone(whole.Files)
		delete(files, name)
		if len((Run{Files: files}).Verify()) == 0 {
			t.Errorf("without %s: not found", name)
		}
		files["x"] = whole.Files[name]
		files[SumsName] = sums(files)
		if len((Run{Files: files}).Verify()) == 0 {
			t.Errorf("%s under another name: not found", name)
		}
	}
}

// TestPlainTools checks the file of the hashes with sha256sum(1).
func TestPlainTools(t *testing.T) {
	tool, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("sha256sum is not installed")
	}
	dir, r := t.TempDir(), example(t)
	for name, content := range r.Files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(tool, "--check", "--strict", SumsName)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Count(out, []byte(": OK\n")) != len(r.Files)-1 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestNewRefuses(t *testing.T) {
	for want, files := range map[string]map[string][]byte{
		"not a file of a record":   {"x": nil},
		"at most":                  {StdoutName: make([]byte, MaxFile+1)},
		"missing without a reason": {StdoutName: nil},
		"is not a file":            {SumsName: nil},
	} {
		m := Manifest{Absent: absent(nil)}
		if want == "missing without a reason" {
			delete(m.Absent, ExecName)
		}
		if _, err := New(m, files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestNamesOfObjects reads manifests in which a text is in the place of an object name. Names are printed, pasted and passed to git as they are.
func TestNamesOfObjects(t *testing.T) {
	full, hostile := strings.Repeat("a", 40), []string{"x; touch y #\u001b[2J\u202e", "--upload-pack=x", "HEAD\nHEAD", "aaaa"}
	for _, form := range []string{`"previous":%s`, `"base":%s`, `"inner":{"after":%s}`, `"outer":{"before":%s}`, `"parents":{%s:[]}`,
		`"parents":{"` + full + `":[%s]}`, `"flagged":[{"commit":%s}]`} {
		for _, name := range append(hostile, full) {
			quoted, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			text := `{"version":1,"session":"20261125T100000Z-7f3a","run":3,` + fmt.Sprintf(form, quoted) + "}"
			if _, err := DecodeManifest([]byte(text)); (err == nil) != (name == full) {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// TestOpenRefuses opens a record with a file that is larger than records have.
func TestOpenRefuses(t *testing.T) {
	r := example(t)
	r.Files[ChangesName] = make([]byte, MaxFile+1)
	if _, err := Open(r.Files); err == nil || !strings.Contains(err.Error(), ChangesName+" has 8388609 bytes") {
		t.Error(err)
	}
}

// TestWorstStatus compares the worst of random statuses with its place on the ladder.
func TestWorstStatus(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		var all []Status
		worst := 0
		for range r.IntN(5) {
			n := r.IntN(len(ladder))
			all, worst = append(all, ladder[n]), max(worst, n)
		}
		if got := Worst(all...); got != ladder[worst] {
			t.Fatalf("%v: %s", all, got)
		}
	}
	if Worst("other", InvariantBroken) != "other" {
		t.Error("an unknown status counts as good")
	}
}

func TestRefs(t *testing.T) {
	session, n, ok := ParseRef(Ref("20261125T100000Z-7f3a", 12))
	if !ok || session != "20261125T100000Z-7f3a" || n != 12 {
		t.Error(session, n, ok)
	}
	for _, ref := range []string{"", "refs/airlock/runs/x/1", Ref("20261125T100000Z-7f3a", 0), Ref("20261125T100000Z-7f3a", 1) + "/x", Ref("20261125T100000Z-7f3a\n", 1)} {
		if _, _, ok := ParseRef(ref); ok {
			t.Errorf("%q is a run", ref)
		}
	}
}

// FuzzOpen reads any bytes as each file of a record. What was read is written and read again as it was.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("{\"version\":1}\n"))
	f.Add([]byte(resourcesHeader + "\n1,2,3,4,5,6\n"))
	f.Add([]byte("landed\t-\t-\t-\tx\n"))
	f.Add([]byte("{\"version\":2,\"width\":1}\n[0.5,\"o\",\"x\"]\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		r := Run{Files: map[string][]byte{}}
		for _, name := range Names() {
			r.Files[name] = content
		}
		r.Verify()
		DecodeManifest(content) // it must only not panic
		r.Execs()
		r.Egress()
		DecodeCast(content)
		samples, _ := r.Samples()
		if again, err := decodeSamples(EncodeSamples(samples)); err != nil || !reflect.DeepEqual(samples, again) {
			t.Errorf("%v became %v, %v", samples, again, err)
		}
		commits, _ := r.Commits()
		again, err := DecodeCommits(EncodeCommits(commits))
		if err != nil || len(again) != len(commits) {
			t.Errorf("%v became %v, %v", commits, again, err)
		}
	})
}
