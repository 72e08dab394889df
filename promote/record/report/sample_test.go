package report_test

import (
	"crypto/sha1"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/record"
)

// began is when the sample run began.
var began = time.Date(2026, 11, 20, 20, 15, 1, 0, time.UTC)

func at(minutes float64) time.Time { return began.Add(time.Duration(minutes * float64(time.Minute))) }

func id(n int) gitops.OID {
	return gitops.OID(fmt.Sprintf("%x", sha1.Sum([]byte{byte(n), byte(n >> 8)})))
}

func pointer[T any](v T) *T { return &v }

// ran returns one execution; its end in milliseconds is not known if ms is negative.
func ran(seq uint64, minutes float64, exit int, ms int64, argv ...string) record.Exec {
	e := record.Exec{Time: at(minutes), Seq: seq, PID: int(10 + seq), PPID: 3, Cwd: "/workspace", Path: argv[0], Argv: argv, Exe: "/usr/bin/" + argv[0], Top: true}
	if ms >= 0 {
		e.Exit, e.Millis = &exit, &ms
	}
	return e
}

// mail returns a commit as git format-patch prints it.
func mail(commit gitops.OID, minutes float64, subject, body, changes string) string {
	return fmt.Sprintf("From %s Mon Sep 17 00:00:00 2001\nFrom: Eric Dubois <e@example.com>\nDate: %s\nSubject: [PATCH] %s\n\n%s\n---\n a | 1 +\n 1 file changed\n\n%s-- \n2.39.5\n\n",
		commit, at(minutes).Format("Mon, 2 Jan 2006 15:04:05 -0700"), subject, body, changes)
}

const (
	priceChange = "diff --git a/shop/price.go b/shop/price.go\nindex 3b18e51..a042389 100644\n--- a/shop/price.go\n+++ b/shop/price.go\n" +
		"@@ -8,8 +8,11 @@ import \"math\"\n \n // Round returns a price in cents.\n func Round(x float64) int {\n-\tif x < 0 {\n-\t\treturn int(x - 0.5)\n-\t}\n+\tif math.IsNaN(x) {\n+\t\treturn 0\n+\t}\n" +
		"+\n+\t// The till rounds half to even, and so must we.\n+\treturn int(math.RoundToEven(x))\n }\n \n"
	workflowChange = "diff --git a/.github/workflows/ci.yml b/.github/workflows/ci.yml\nnew file mode 100644\nindex 0000000..a042389\n--- /dev/null\n+++ b/.github/workflows/ci.yml\n@@ -0,0 +1,2 @@\n+on: push\n+jobs: {}\n"
	stockChange    = "diff --git a/stock b/stock\nindex 3b18e51..a042389 100644\n--- a/stock\n+++ b/stock\n@@ -1 +1 @@\n-11\n+12\n"
)

// sampleFiles is a run with one of everything that a report shows.
func sampleFiles(t *testing.T) (record.Manifest, map[string][]byte) {
	commits := []record.Commit{
		{State: record.Landed, Inner: id(1), Outer: id(101), Tree: id(201), Subject: "prices: round half to even"},
		{State: record.Landed, Inner: id(2), Outer: id(102), Tree: id(202), Subject: "ci: run the tests"},
		{State: record.Pending, Inner: id(3), Outer: id(103), Tree: id(203), Subject: "stock: twelve"},
	}
	execs := []record.Exec{
		ran(1, 0, 0, 26*60*1000, "claude", "-p", "Fix the rounding of prices"),
		ran(2, 0.7, 0, 300, "rg", "Round", "shop"),
		ran(3, 1.5, 1, 41_000, "go", "test", "./..."),
		ran(4, 3.2, 0, 62_000, "go", "test", "./..."),
		ran(5, 5, 0, 90, "git", "commit", "-am", "prices: round half to even"),
		ran(6, 6, 0, 14_000, "go", "vet", "./..."),
		ran(7, 7.5, 0, 80, "git", "commit", "-m", "ci: run the tests"),
		ran(8, 18, 1, 52_000, "go", "test", "./..."),
		ran(9, 21, 0, 70, "curl", "-s", "https://telemetry.example.net/v1?run=1"),
		ran(10, 25, 0, 60, "git", "commit", "-am", "stock: twelve"),
	}
	denied := ran(11, 22, 0, -1, "rm", "-rf", "/workspace/.git")
	denied.Deny, denied.Exe = pointer("rm -rf *"), ""
	raced := ran(12, 23, 0, 12, "true")
	raced.Disputed, raced.Exe = true, "/usr/bin/nc"
	execs = append(execs, denied, raced)
	egress := []record.Egress{
		{Kind: control.KindFlow, Time: at(6), Name: "api.anthropic.com", Port: 443, Verdict: control.VerdictAllow, Sent: 812_000, Received: 4_300_000, Millis: 300_000},
		{Kind: control.KindFlow, Time: at(25.5), Name: "api.anthropic.com", Port: 443, Verdict: control.VerdictAllow, Sent: 390_000, Received: 4_000_000, Millis: 450_000},
		{Kind: control.KindFlow, Time: at(1.6), Name: "proxy.golang.org", Port: 443, Verdict: control.VerdictAllow, Sent: 9_000, Received: 21_000_000, Millis: 9_000},
		{Kind: control.KindRefusal, Time: at(21), Name: "telemetry.example.net", Port: 443, Verdict: control.VerdictDeny, Reason: "no rule allows it", Count: 4},
	}
	events := []record.Event{
		{Time: at(0), Level: record.Info, Kind: record.EventRun, Text: "the command began"},
		{Time: at(5.01), Level: record.Notice, Kind: record.EventLand, Text: "1 commit landed", Data: map[string]string{"commit": string(id(101))}},
		{Time: at(7.51), Level: record.Notice, Kind: record.EventLand, Text: "1 commit landed", Data: map[string]string{"commit": string(id(102))}},
		{Time: at(25.02), Level: record.Notice, Kind: record.EventHold, Text: "landing would overwrite a change of yours that is not committed: stock"},
		{Time: at(26), Level: record.Info, Kind: record.EventRunEnd, Text: "the command ended with exit status 0"},
	}
	var samples []record.Sample
	cpu := int64(0)
	for ms := int64(0); ms <= 26*60*1000; ms += 4000 {
		busy := 200 + (ms/4000*37)%17*100
		if minute := ms / 60_000; minute >= 9 && minute < 18 || minute >= 19 && minute < 20 {
			busy = 8
		} else if minute == 3 || minute == 18 {
			busy = 4 * 1900
		}
		cpu += busy
		samples = append(samples, record.Sample{Millis: ms, CPU: cpu, Memory: 300<<20 + ms*400 + busy*100_000, Read: ms, Written: ms * 20, Processes: 12})
	}
	files := map[string][]byte{
		record.ResourcesName: record.EncodeSamples(samples), record.CommitsName: record.EncodeCommits(commits),
		record.StdoutName: []byte("Prices are rounded half to even now, as the till does.\nThe tests in shop still fail: see TestBasket.\n"),
		record.ChangesName: []byte(mail(id(101), 5, "prices: round half to even", "The till rounds half to even.\n\nFixes the sums of long receipts.", priceChange) +
			mail(id(102), 7.5, "ci: run the tests", "", workflowChange) + mail(id(103), 25, "stock: twelve", "", stockChange)),
	}
	files[record.ExecName], files[record.EgressName], files[record.EventsName] = lines(t, execs), lines(t, egress), lines(t, events)
	return record.Manifest{
		Session: "20261120T201501Z-7f3a", ID: "7f3a", Run: 3, Kind: record.Direct, Agent: "claude",
		Argv: []string{"claude", "-p", "Fix the rounding of prices in shop/price.go and stock, and commit each fix."}, Started: began, Ended: at(26), Exit: pointer(0),
		Status: record.Denied, Reasons: []string{"a rule refused a program"}, Branch: "refs/heads/feat/prices", Base: id(0), Landed: 2,
		Inner: record.Range{Before: id(1000), After: id(3)}, Outer: record.Range{Before: id(0), After: id(102)},
		Held:        []record.Hold{{Reason: "collision", Message: "landing would overwrite a change of yours that is not committed: stock", Paths: []string{"stock"}}},
		Checkpoints: record.CheckpointRange{Before: 4, After: 5},
		Fingerprint: record.FingerprintRange{Before: record.Fingerprint{Index: "a", Tree: "b", Files: 1204}, After: record.Fingerprint{Index: "c", Tree: "d", Files: 1205}},
		Backend:     "native", Isolation: record.Isolation{Memory: 4 << 30, CPUs: 2, PIDs: 512}, Network: "allowlist", Policy: []string{"builtin"},
		Environment: []string{"ANTHROPIC_API_KEY", "TERM"}, Program: "0.4.0",
		Visibility: []string{
			"Commands that a shell has built in are no programs, and are not listed.", "Code inside of an interpreter is not seen: only the interpreter is.",
			"What was inside TLS to proxy.golang.org was not seen, only its name and size.",
		},
		Absent: map[string]string{record.TerminalName: "the command had no terminal", record.StderrName: "nothing was printed", record.ReportJSONName: "made later", record.ReportHTMLName: "made later"},
	}, files
}

func lines[T record.Event | record.Exec | record.Egress](t *testing.T, values []T) []byte {
	t.Helper()
	content, err := record.EncodeLines(values)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// sample returns the record of a run with one of everything that a report shows. change may change it before.
func sample(t *testing.T, change func(m *record.Manifest, files map[string][]byte)) record.Run {
	t.Helper()
	m, files := sampleFiles(t)
	if change != nil {
		change(&m, files)
	}
	for _, name := range record.Names() {
		if files[name] == nil && m.Absent[name] == "" {
			m.Absent[name] = "not recorded here"
		}
	}
	r, err := record.New(m, files)
	if err != nil {
		t.Fatal(err)
	}
	r.Ref = record.Ref(m.Session, m.Run)
	return r
}

// plain paints nothing.
type plain struct{}

func (plain) Bold(text string) string   { return text }
func (plain) Red(text string) string    { return text }
func (plain) Yellow(text string) string { return text }
func (plain) Green(text string) string  { return text }

// squeezed returns a text with single spaces, in which a sentence can be searched.
func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }
