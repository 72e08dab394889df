package report_test

import (
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/report"
)

// These tests are about what misled the second reader.

// TestOtherTests checks that a failed test with other arguments than the first one does not look like a failure of all tests.
func TestOtherTests(t *testing.T) {
	v := short(t, func(_ *record.Manifest, files map[string][]byte) {
		files[record.ExecName] = lines(t, []record.Exec{
			ran(1, seconds(0.8), 1, 20, "go", "test", "./..."), ran(2, seconds(1), 0, 20, "go", "test", "./..."), ran(3, seconds(1.2), 1, 20, "go", "test", "-run", "New", "./shop"),
		})
	})
	has(t, v.Verdict.String(), "the last tests (go test -run New ./shop) failed")
	other := "another one, go test ./..., at 20:15:02.0: passed"
	has(t, answer(t, v, "Tests"), "the last run failed", "3 runs, 2 failed", other)
	has(t, squeezed(text(t, v)), other)
	has(t, answer(t, short(t, nil), "Tests"), "!another one")
}

// TestRefusedHostOfProgram checks that a program whose host was refused has no sign of success.
func TestRefusedHostOfProgram(t *testing.T) {
	v := short(t, func(_ *record.Manifest, files map[string][]byte) {
		files[record.ExecName] = lines(t, []record.Exec{
			ran(1, seconds(1), 0, 50, "curl", "-s", "https://telemetry.example.net/v1"), ran(2, seconds(1), 0, 50, "true", "other.example"),
		})
		files[record.EgressName] = lines(t, []record.Egress{{Kind: control.KindRefusal, Time: at(seconds(1.01)), Name: "telemetry.example.net", Port: 443, Reason: "no rule allows it", Count: 1}})
	})
	has(t, html(t, v), `<td class="look">! exit status 0, and telemetry.example.net was refused`)
	has(t, text(t, v), "exit status 0, and telemetry.example.net was refused  curl -s", "✓ exit status 0  true other.example")
}

// TestOnlySuccessIsGood checks that a program with another exit status than 0 has no check mark, and that a refused address is named
// beside the program that asked for it.
func TestOnlySuccessIsGood(t *testing.T) {
	v := short(t, func(_ *record.Manifest, files map[string][]byte) {
		files[record.ExecName] = lines(t, []record.Exec{
			ran(1, seconds(1), 7, 50, "curl", "-s", "http://192.0.2.7/latest"), ran(2, seconds(1), 1, 50, "rm", "-rf", "/etc/passwd"),
		})
		files[record.EgressName] = lines(t, []record.Egress{{Kind: control.KindRefusal, Time: at(seconds(1.01)), Address: "192.0.2.7", Port: 80, Reason: "no rule allows it", Count: 1}})
	})
	has(t, html(t, v), `<td class="plain">· exit status 1<`, `<td class="look">! exit status 7, and 192.0.2.7 was refused`)
	has(t, text(t, v), "· exit status 1  rm -rf /etc/passwd")
}

// TestFlagged checks that a commit which landed with a finding of the gate is among the first things to look at.
func TestFlagged(t *testing.T) {
	v := short(t, func(m *record.Manifest, files map[string][]byte) {
		commits, err := record.Run{Files: files}.Commits()
		if err != nil {
			t.Fatal(err)
		}
		m.Flagged = []record.Flag{{Commit: commits[0].Outer, Rule: "host-exec", Meaning: "a new file that CI runs"}}
	})
	has(t, text(t, v), "flagged: \"sort\" landed, and the rule host-exec has a finding in it: a new file that CI runs")
}

// TestCommandLines checks that a page shows the lines of a command as lines, and nothing else of it.
func TestCommandLines(t *testing.T) {
	v := short(t, func(m *record.Manifest, _ map[string][]byte) { m.Argv = []string{"sh", "-c", "true\n\x1b[2J<b>"} })
	has(t, html(t, v), "sh -c &#39;true\n\\u001b[2J&lt;b&gt;&#39;</code>")
	has(t, text(t, v), `$ sh -c 'true\n\u001b[2J<b>'`)
}

// TestUndoOfSeveralLandings checks that a report says what one undo takes back.
func TestUndoOfSeveralLandings(t *testing.T) {
	landed := func(s float64, n string) record.Event {
		return record.Event{Time: at(seconds(s)), Level: record.Notice, Kind: record.EventLand, Text: "landed", Data: map[string]string{"count": n}}
	}
	v := short(t, func(_ *record.Manifest, files map[string][]byte) {
		files[record.EventsName] = lines(t, []record.Event{landed(1, "1"), landed(1.5, "2")})
	})
	has(t, answer(t, v, "Your files"), "git airlock undo", "git airlock undo (2 commits)", "1 landing is before it, which needs another undo")
	has(t, answer(t, short(t, nil), "Your files"), "git airlock undo", "!before it")
}

// TestDenialIsNotAFailure checks that the status of a run which ended by itself does not look like a failure.
func TestDenialIsNotAFailure(t *testing.T) {
	v := short(t, func(m *record.Manifest, _ map[string][]byte) {
		m.Status, m.Reasons = record.Denied, []string{"a rule refused a program"}
	})
	meaning := "something was refused, and the command ended by itself with exit status 0"
	has(t, squeezed(text(t, v)), "denied ("+meaning+")")
	has(t, html(t, v), `<span class="status look">! denied</span> `+meaning+".")
}

// TestRefusalsWithoutPrograms checks that a refusal of the network counts once if programs are not recorded.
func TestRefusalsWithoutPrograms(t *testing.T) {
	for name, want := range map[string]string{record.ExecName: "1 refusal", record.EgressName: "1 refusal"} {
		v := short(t, func(m *record.Manifest, files map[string][]byte) {
			files[record.EgressName] = lines(t, []record.Egress{{Kind: control.KindRefusal, Time: at(seconds(1)), Name: "a.example", Port: 443, Reason: "no rule allows it", Count: 1}})
			files[record.EventsName] = lines(t, []record.Event{{Time: at(seconds(1)), Level: record.Warning, Kind: record.EventDenied,
				Text: "the network refused a.example:443", Data: map[string]string{"host": "a.example"}}})
			delete(files, name)
			m.Absent[name] = "not recorded"
		})
		has(t, answer(t, v, "Refused"), want, "!2 refusals")
	}
}

// TestFailedProgramAfterMany checks that a page which has no room for all programs leaves out harmless ones, such as a grep that finds
// nothing, before one that failed.
func TestFailedProgramAfterMany(t *testing.T) {
	v := short(t, nil)
	for range 300 {
		v.Programs = append(v.Programs, report.Program{Command: "grep -q harmless", Level: report.Plain})
	}
	v.Programs = append(v.Programs, report.Program{Command: "make release", Level: report.Bad})
	page, err := v.HTML()
	if err != nil {
		t.Fatal(err)
	}
	has(t, string(page), "make release")
}

// TestProgramThatEndedAtOnce checks that a program that a signal ended at once is not said to have changed its arguments.
func TestProgramThatEndedAtOnce(t *testing.T) {
	v := short(t, func(_ *record.Manifest, files map[string][]byte) {
		killed := ran(1, seconds(1), 137, 1, "sh", "-c", "kill -9 $$")
		killed.Exe, killed.Disputed = "", true
		files[record.ExecName] = lines(t, []record.Exec{killed})
	})
	has(t, squeezed(text(t, v)), "1 program ended before the arguments could be compared", "!changed arguments")
}
