package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/report"
)

// text returns the form for terminals.
func text(t *testing.T, v report.View) string {
	t.Helper()
	var b bytes.Buffer
	if err := v.Print(&b, plain{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func html(t *testing.T, v report.View) string {
	t.Helper()
	content, err := v.HTML()
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > report.MaxHTML {
		t.Errorf("the page has %d bytes, and at most %d are allowed", len(content), report.MaxHTML)
	}
	return string(content)
}

// TestQuestions checks that the text has the facts which answer each question in the documentation of the package.
func TestQuestions(t *testing.T) {
	v := report.Of(sample(t, nil))
	shown := squeezed(text(t, v))
	page := html(t, v)
	answers := [][]string{
		{"claude -p 'Fix the rounding", "claude ran for 26 min", "exit status 0"},
		{"landed 2 commits on feat/prices", "1 commit waits (collision)", "landing would overwrite a change of yours that is not committed: stock"},
		{"the last run of go test ./... failed at 20:33:01", "3 runs, 2 failed", "1 commit was made after it"},
		{"2 hosts, 1.2 MB sent", "api.anthropic.com", "proxy.golang.org"},
		{"telemetry.example.net, 4 times: no rule allows it", "1 program by the rule rm -rf *", "rm -rf /workspace/.git"},
		{"3 files, +9 −4", "shop/price.go", "1 changed file is not where the command names files .github/workflows/ci.yml"},
		{"your files changed: 2 commits landed in them", "to get the workspace as before this run, while the airlock exists: git airlock checkpoint restore 4", "to take the last landing back, while the airlock exists: git airlock undo"},
		{"4 things of this run", "Code inside of an interpreter is not seen: only the interpreter is", "What was inside TLS to proxy.golang.org was not seen"},
	}
	if len(v.Answers) != len(answers) {
		t.Fatalf("%d answers, want %d", len(v.Answers), len(answers))
	}
	for i, facts := range answers {
		for _, fact := range facts {
			if !strings.Contains(shown, fact) {
				t.Errorf("%s The text does not have %q", v.Answers[i].Question, fact)
			}
		}
		if !strings.Contains(page, ">"+v.Answers[i].Name+"<") {
			t.Errorf("the page does not have %q", v.Answers[i].Name)
		}
	}
	for _, fact := range []string{"1 program had other arguments than the call, or changed them: the file that ran is certain", "nothing happened for 9 min from 20:23:57", "20:38:01 ran /usr/bin/nc"} {
		if !strings.Contains(shown, fact) {
			t.Errorf("the text does not have %q\n%s", fact, shown)
		}
	}
	if first := v.First[0]; first.Level != report.Bad || first.Kind != "Refused" {
		t.Errorf("the first finding is %+v", first)
	}
}

// TestStatuses checks the sentence and the level of each status.
func TestStatuses(t *testing.T) {
	for status, want := range map[record.Status]string{
		record.Completed: "claude ran for 26 min and landed", record.Failed: "claude failed with exit status 2 after 26 min and landed",
		record.Timeout: "claude was ended after 26 min, when its time was over, and landed", record.Stopped: "claude was stopped after 26 min and landed",
		record.Limited: "claude was ended after 26 min by a limit (memory) and landed", record.IsolationBroken: "A wall of the prison was broken: claude ran",
		record.InvariantBroken: "A promise of git-airlock was broken: claude ran",
	} {
		v := report.Of(sample(t, func(m *record.Manifest, files map[string][]byte) {
			m.Status, m.Reasons, m.LimitsHit, m.Held = status, []string{"the reason"}, []string{"memory"}, nil
			if status == record.Failed {
				m.Exit = pointer(2)
			}
			files[record.ExecName], files[record.EgressName] = []byte{}, []byte{}
		}))
		if got := v.Verdict.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", status, got, want)
		}
		bad := slices.ContainsFunc(v.First, func(f report.Finding) bool {
			return f.Kind == "Ended" && strings.Contains(f.Text.String(), "the reason")
		})
		if bad == (status == record.Completed) || (v.Level == report.Bad) != bad {
			t.Errorf("%s: level %s, findings %v", status, v.Level, v.First)
		}
	}
}

// TestSuccessfulRun checks that nothing is claimed about a run in which all went well.
func TestSuccessfulRun(t *testing.T) {
	v := report.Of(sample(t, func(m *record.Manifest, files map[string][]byte) {
		m.Status, m.Reasons, m.Held, m.Ended = record.Completed, nil, nil, at(4.5)
		m.Fingerprint.After = m.Fingerprint.Before
		files[record.ExecName] = lines(t, []record.Exec{ran(1, 1, 0, 800, "pytest", "-q")})
		files[record.EgressName], files[record.CommitsName], files[record.ChangesName] = []byte{}, []byte{}, []byte{}
		files[record.EventsName] = []byte{}
	}))
	if len(v.First) != 0 || v.Level != report.Good {
		t.Errorf("level %s, findings %v", v.Level, v.First)
	}
	shown := squeezed(text(t, v))
	for _, fact := range []string{"Nothing that was refused, held or failed is in the record.", "claude ran for 4 min 30 s and landed nothing on feat/prices.", "index and 1204 files as before", "the last run passed", "refused nothing", "changed no file", "reached no host"} {
		if !strings.Contains(shown, fact) {
			t.Errorf("the text does not have %q\n%s", fact, shown)
		}
	}
	if page := html(t, v); !strings.Contains(page, "No host was asked for.") {
		t.Error("the page does not say that no host was asked for")
	}
}

// TestAbsent checks that a record with nothing but a manifest gives a report which claims nothing else.
func TestAbsent(t *testing.T) {
	v := report.Of(sample(t, func(m *record.Manifest, files map[string][]byte) {
		clear(files)
		m.Exit, m.Recovered, m.Checkpoints, m.Fingerprint = nil, true, record.CheckpointRange{}, record.FingerprintRange{}
		m.Absent[record.ExecName] = "this machine cannot record programs"
	}))
	shown := squeezed(text(t, v))
	for _, fact := range []string{
		"its end was not seen", "tests unknown, because programs are not recorded", "reached unknown: the network was allowlist, and is not recorded",
		"changed unknown, because the changes are not in the record", "your files unknown", "no checkpoint was made before",
		"Which programs ran is not recorded: this machine cannot record programs", "may be missing", "landed 2 commits on feat/prices",
	} {
		if !strings.Contains(shown, fact) {
			t.Errorf("the text does not have %q\n%s", fact, shown)
		}
	}
	html(t, v)
}

// TestTestCommands checks which command lines count as tests, and which test's result counts.
func TestTestCommands(t *testing.T) {
	for line, want := range map[string]bool{
		"go test ./...": true, "/usr/local/go/bin/go test": true, "cargo test --all": true, "npm test": true, "npm run test:unit": true, "python3 -m pytest": true,
		"pytest -x tests": true, "make -j4 check": true, "./test.sh": true, "bash ./run-tests.sh": true, "scripts/test -run X": true, "node test.js": true, "./mvnw -q verify": true,
		"python3 test_sort.py": true, "/workspace/sort_test": true,
		"go build ./...": false, "test -f x": false, "git commit -m test": false, "grep test x": false, "python3 main.py": false, "make": false, "ls": false, "latest": false,
	} {
		v := report.Of(sample(t, func(_ *record.Manifest, files map[string][]byte) {
			files[record.ExecName] = lines(t, []record.Exec{ran(1, 1, 0, 5, strings.Fields(line)...)})
		}))
		if v.Programs[0].Test != want {
			t.Errorf("%q: %t, want %t", line, v.Programs[0].Test, want)
		}
	}
	outer, replaced, inner := ran(1, 1, 1, 900, "npm", "test"), ran(2, 1.1, 0, -1, "jest"), ran(2, 1.2, 0, 700, "node", "jest.js")
	replaced.PPID, inner.PID, inner.PPID = outer.PID, replaced.PID, outer.PID
	v := report.Of(sample(t, func(_ *record.Manifest, files map[string][]byte) {
		files[record.ExecName] = lines(t, []record.Exec{outer, replaced, inner})
	}))
	if !strings.Contains(squeezed(text(t, v)), "1 run, 1 failed") {
		t.Errorf("a test that another one started counts\n%s", text(t, v))
	}
}

// TestTrafficCountsOnce checks that the bytes of a long connection count once.
func TestTrafficCountsOnce(t *testing.T) {
	flow := func(verdict string, millis int64) record.Egress {
		return record.Egress{Kind: control.KindFlow, Time: at(9), Name: "a.example", Verdict: verdict, Sent: 1000, Millis: millis}
	}
	v := report.Of(sample(t, func(_ *record.Manifest, files map[string][]byte) {
		files[record.EgressName] = lines(t, []record.Egress{
			flow(control.VerdictBegun, 60_000), flow(control.VerdictBegun, 60_000), flow(control.VerdictAllow, 90_000), flow(control.VerdictAllow, 5),
		})
	}))
	if h := v.Hosts[0]; h.Sent != 3000 || h.Requests != 0 || h.Connections != 3 {
		t.Errorf("%+v", h)
	}
	if !strings.Contains(text(t, v), "reached a.example: 3 connections, 3.0 kB sent") {
		t.Errorf("requests that nobody saw are counted\n%s", text(t, v))
	}
}

// TestSeenRequestsCount checks that each request counts that the network has seen, also several on one connection, and those refused or failed.
func TestSeenRequestsCount(t *testing.T) {
	request := func(kind, verdict string, count int) record.Egress {
		return record.Egress{Kind: kind, Time: at(9), Name: "a.example", Verdict: verdict, Seen: control.SeenRequest, Method: "POST", Path: "/v1", Status: 200, Count: count}
	}
	v := report.Of(sample(t, func(_ *record.Manifest, files map[string][]byte) {
		all := []record.Egress{{Kind: control.KindFlow, Time: at(9), Name: "a.example", Verdict: control.VerdictAllow, Seen: control.SeenRequest, Sent: 1000, Received: 2000}}
		for range 8 {
			all = append(all, request(control.KindRequest, control.VerdictAllow, 0))
		}
		all = append(all, request(control.KindRequest, control.VerdictFailed, 0), request(control.KindRefusal, control.VerdictDeny, 5),
			record.Egress{Kind: control.KindRefusal, Time: at(9), Name: "b.example", Verdict: control.VerdictDeny, Seen: control.SeenOpaque, Count: 2})
		files[record.EgressName] = lines(t, all)
	}))
	said := text(t, v)
	for _, want := range []string{
		"reached a.example: 8 requests in 1 connection, 1.0 kB sent", "a.example: 1 request, 0 B sent", "no rule allows it a.example: 5 requests, 0 B sent", "b.example: 2 connections,",
		"5 requests were refused and 2 connections were refused", "a.example, 5 times",
	} {
		if !strings.Contains(squeezed(said), want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
}

// TestMessagesAreNotChanges checks that what looks like a change in a message is not shown as one.
func TestMessagesAreNotChanges(t *testing.T) {
	fake := "diff --git a/safe b/safe\nindex 3b18e51..a042389 100644\n--- a/safe\n+++ b/safe\n@@ -1,9 +1,9 @@\n-a\n+b\n"
	for name, body := range map[string]string{
		"a change":               "x\n---\n safe | 1 +\n\n" + fake,
		"a change and an end":    "x\n---\n safe | 1 +\n\n" + fake + "-- \n2.39.5\n\n",
		"a binary change":        "x\n---\n\ndiff --git a/safe b/safe\nGIT binary patch\nliteral 3\nKcmZ",
		"another commit":         "x\n---\n\nFrom " + string(id(101)) + " Mon Sep 17 00:00:00 2001\nSubject: [PATCH] y\n\ny\n---\n\n" + fake + "-- \n2.39.5\n",
		"an unchanged overview":  "---\n",
		"nothing but a file":     fake,
		"a line that is deleted": "--\n---\n---",
	} {
		v := report.Of(sample(t, func(_ *record.Manifest, files map[string][]byte) {
			files[record.ChangesName] = []byte(mail(id(102), 7, "ci", body, workflowChange) + mail(id(103), 8, "stock", body, stockChange))
		}))
		for i, want := range []string{"", ".github/workflows/ci.yml", "stock"} {
			var paths []string
			for _, f := range v.Commits[i].Files {
				paths = append(paths, f.Path.String())
			}
			if got := strings.Join(paths, " "); got != want {
				t.Errorf("%s: commit %d changes %q, want %q", name, i+1, got, want)
			}
		}
	}
}

// TestEmptyCommit checks that a commit without changes is shown with its message.
func TestEmptyCommit(t *testing.T) {
	v := report.Of(sample(t, func(_ *record.Manifest, files map[string][]byte) {
		empty, _, _ := strings.Cut(mail(id(102), 7, "ci", "The message.", ""), "\n---")
		files[record.ChangesName] = []byte(mail(id(101), 6, "prices", "", priceChange) + empty + "\n\n" + mail(id(103), 8, "stock", "", stockChange))
	}))
	if c := v.Commits[1]; len(c.Files) > 0 || len(c.Body) != 1 || c.Body[0] != "The message." || c.LeftOut != "" {
		t.Errorf("%+v", c)
	}
	if len(v.Commits[0].Files) != 1 || len(v.Commits[2].Files) != 1 {
		t.Error("the commits beside have no changes")
	}
}

// TestSize checks that the page stays small whatever the record has, and that it names what is left out.
func TestSize(t *testing.T) {
	long := strings.Repeat("<\u202e\x01\xff&\"'", 500)
	v := report.Of(sample(t, func(m *record.Manifest, files map[string][]byte) {
		m.Argv, m.Visibility = []string{long, long}, slices.Repeat([]string{long}, 200)
		m.Held = slices.Repeat([]record.Hold{{Reason: long, Message: long, Paths: slices.Repeat([]string{long}, 50)}}, 50)
		var execs []record.Exec
		for i := range 4000 {
			e := ran(uint64(i), float64(i)/200, i%3, int64(i), "go", "test", long[:400])
			e.Disputed = i%2 == 0
			execs = append(execs, e)
		}
		var egress []record.Egress
		var events []record.Event
		var commits []record.Commit
		var changes strings.Builder
		for i := range 2000 {
			egress = append(egress, record.Egress{Kind: control.KindRefusal, Time: at(3), Name: fmt.Sprint(i, long[:300]), Reason: long[:300]})
			events = append(events, record.Event{Time: at(2), Kind: record.EventDenied, Level: record.Warning, Text: long[:300]})
			commits = append(commits, record.Commit{State: record.Landed, Inner: id(i), Outer: id(i + 5000), Tree: id(7), Subject: "x"})
			changes.WriteString(mail(id(i), 3, "x", long[:200], strings.Replace(stockChange, "+12", "+"+strings.ReplaceAll(long, "\n", "")[:900], 1)))
		}
		files[record.ExecName], files[record.EgressName], files[record.EventsName] = lines(t, execs), lines(t, egress), lines(t, events)
		files[record.CommitsName], files[record.ChangesName] = record.EncodeCommits(commits), []byte(changes.String())
	}))
	if page := html(t, v); !strings.Contains(page, "Not shown here, but in the record: ") || !strings.Contains(page, "hosts") {
		t.Error("the page does not name what is left out")
	}
	content, err := v.JSON()
	if err != nil || len(content) > report.MaxHTML {
		t.Errorf("the document has %d bytes (%v)", len(content), err)
	}
	if shown := text(t, v); len(shown) > 2<<20 {
		t.Errorf("the text has %d bytes", len(shown))
	}
}

// TestDocumentOfNothing checks that a document without content has empty lists, and null for nothing else than absent values.
func TestDocumentOfNothing(t *testing.T) {
	content, err := report.View{Commits: []report.Commit{{}}, Axis: report.Axis{Lanes: []report.Lane{{}}, Plots: []report.Plot{{}}}}.JSON()
	if err != nil || strings.Contains(string(content), "null") {
		t.Errorf("%v: %s", err, content)
	}
}

// TestDocument checks that the document can be read, and has no raw text.
func TestDocument(t *testing.T) {
	content, err := report.Of(sample(t, func(m *record.Manifest, _ map[string][]byte) { m.Argv = []string{"a\u202eb"} })).JSON()
	if err != nil {
		t.Fatal(err)
	}
	var v report.View
	if err := json.Unmarshal(content, &v); err != nil {
		t.Fatal(err)
	}
	if v.Version != 1 || len(v.Answers) != 8 || bytes.ContainsRune(content, '\u202e') || !strings.Contains(v.Run.Command.Raw(), `a\u202eb`) {
		t.Errorf("%s", content)
	}
}

// TestChangedRecord checks that the report of a record with a flipped bit begins with that.
func TestChangedRecord(t *testing.T) {
	for name := range sample(t, nil).Files {
		r := sample(t, nil)
		r.Files[name] = append([]byte{}, r.Files[name]...)
		r.Files[name][len(r.Files[name])/2] ^= 1
		if f := report.Of(r).First[0]; f.Kind != "Changed" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestShortRun checks that a run without a length has an axis.
func TestShortRun(t *testing.T) {
	v := report.Of(sample(t, func(m *record.Manifest, _ map[string][]byte) { m.Ended = m.Started }))
	if len(v.Axis.Ticks) == 0 {
		t.Error("the axis has no ticks")
	}
	html(t, v)
	v = report.Of(sample(t, func(m *record.Manifest, _ map[string][]byte) { m.Started, m.Ended = time.Time{}, at(0) }))
	html(t, v)
	text(t, v)
}

// FuzzOf checks that no record makes a report fail or grow.
func FuzzOf(f *testing.F) {
	m, files := sampleFiles(&testing.T{})
	for name := range files {
		f.Add(name, files[name])
	}
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		clone := map[string][]byte{}
		for n, c := range files {
			clone[n] = c
		}
		clone[name] = content
		v := report.Of(record.Run{Manifest: m, Files: clone})
		page := html(t, v)
		text(t, v)
		if _, err := v.JSON(); err != nil {
			t.Error(err)
		}
		if strings.Contains(page, "<script") {
			t.Error("a script")
		}
	})
}

// BenchmarkPage makes the page of a run of 3,000 programs, 1,800 samples, 600 events and 40 commits.
func BenchmarkPage(b *testing.B) {
	m, files := sampleFiles(&testing.T{})
	var execs []record.Exec
	for i := range 3000 {
		execs = append(execs, ran(uint64(i), float64(i)/120, i%7, 900, "go", "test", "./..."))
	}
	var events []record.Event
	for i := range 600 {
		events = append(events, record.Event{Time: at(float64(i) / 25), Kind: record.EventLand, Level: record.Notice, Text: "1 commit landed"})
	}
	var commits []record.Commit
	var changes strings.Builder
	for i := range 40 {
		commits = append(commits, record.Commit{State: record.Landed, Inner: id(i), Outer: id(i + 5000), Tree: id(7), Subject: "x"})
		changes.WriteString(mail(id(i), 3, "x", "", strings.Replace(priceChange, "@@ -8,8 +8,11 @@", "@@ -8,8 +8,311 @@", 1)+strings.Repeat("+\tsome new line of code(that, is, ordinary)\n", 300)))
	}
	files[record.ExecName], _ = record.EncodeLines(execs)
	files[record.EventsName], _ = record.EncodeLines(events)
	files[record.CommitsName], files[record.ChangesName] = record.EncodeCommits(commits), []byte(changes.String())
	for b.Loop() {
		v := report.Of(record.Run{Manifest: m, Files: files})
		page, err := v.HTML()
		if err != nil {
			b.Fatal(err)
		}
		document, err := v.JSON()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(page)), "page-bytes")
		b.ReportMetric(float64(len(document)), "json-bytes")
	}
}

// TestUnknownTime checks the words for a commit of which no program and no date is known, such as one that waits.
func TestUnknownTime(t *testing.T) {
	if got := (report.View{}).When(report.Commit{}); got != "made at an unknown time" {
		t.Error(got)
	}
}
