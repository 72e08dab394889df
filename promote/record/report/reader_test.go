package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/report"
)

// These tests are about what misled a reader who had never seen a report.

// seconds returns a moment of the sample run.
func seconds(s float64) float64 { return s / 60 }

// short is a run of 1.2 seconds: a test, and then a commit of the same second. It started 0.7 seconds after a whole second.
func short(t *testing.T, change func(m *record.Manifest, files map[string][]byte)) report.View {
	t.Helper()
	return report.Of(sample(t, func(m *record.Manifest, files map[string][]byte) {
		m.Started, m.Ended = at(seconds(0.7)), at(seconds(1.9))
		m.Argv, m.Agent, m.Status, m.Reasons, m.Held, m.Review = []string{"./agent", "again"}, "", record.Completed, nil, nil, "off"
		m.Visibility = record.General()
		inner := ran(5, seconds(1.3), 0, 3, "awk", "-f", "sort.awk")
		inner.Top = false
		files[record.ExecName] = lines(t, []record.Exec{ran(1, seconds(1.2), 0, 264, "./test.sh"), inner, ran(2, seconds(1.6), 0, 100, "git", "commit", "-qm", "sort")})
		files[record.EgressName] = []byte{}
		files[record.EventsName] = lines(t, []record.Event{
			{Time: at(seconds(0.7)), Level: record.Info, Kind: record.EventRun, Text: "a run began"}, {Time: at(seconds(2.1)), Level: record.Notice, Kind: record.EventLand, Text: "landed 1 commit"},
		})
		files[record.CommitsName] = record.EncodeCommits([]record.Commit{{State: record.Landed, Inner: id(1), Outer: id(101), Tree: id(201), Subject: "sort"}})
		files[record.ChangesName] = []byte(mail(id(101), seconds(1), "sort", "Equal numbers stay.", stockChange))
		if change != nil {
			change(m, files)
		}
	}))
}

func lane(t *testing.T, v report.View, name string) report.Lane {
	t.Helper()
	i := slices.IndexFunc(v.Axis.Lanes, func(l report.Lane) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no lane %q: %+v", name, v.Axis.Lanes)
	}
	return v.Axis.Lanes[i]
}

func answer(t *testing.T, v report.View, name string) string {
	t.Helper()
	for _, a := range v.Answers {
		if a.Name == name {
			return fmt.Sprint(a.Text, a.Detail)
		}
	}
	t.Fatalf("no answer %q", name)
	return ""
}

// has checks that a text has some parts, and has not some others, which begin with "!".
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	if _, body, page := strings.Cut(text, "</style>"); page {
		text = body
	}
	for _, part := range parts {
		absent, not := strings.CutPrefix(part, "!")
		if not && strings.Contains(text, absent) {
			t.Errorf("%q is in\n%s", absent, text)
		}
		if !not && !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// TestCommitAfterItsTest checks that a commit is drawn where it was made, although git knows its date only in whole seconds.
func TestCommitAfterItsTest(t *testing.T) {
	v := short(t, nil)
	test, commit := lane(t, v, "Tests").Marks[0], lane(t, v, "Commits").Marks[0]
	if commit.At <= test.At+test.Length || commit.At < 80 || commit.At > 85 {
		t.Errorf("the commit is at %g %%, and its test from %g for %g", commit.At, test.At, test.Length)
	}
	if c := v.Commits[0]; !c.Exact || !c.Time.Equal(at(seconds(1.7))) {
		t.Errorf("%+v", c)
	}
	for line := range strings.Lines(text(t, v)) {
		if strings.HasPrefix(line, "  commits ") && strings.IndexByte(line, '*') < 50 {
			t.Errorf("the commit is too early: %s", line)
		}
	}
	has(t, answer(t, v, "Tests"), "1 commit was made after it: first the test, then the commit")
	v = short(t, func(_ *record.Manifest, files map[string][]byte) {
		files[record.ExecName] = lines(t, []record.Exec{ran(1, seconds(1.2), 0, 264, "./test.sh")})
	})
	if c := v.Commits[0]; c.Exact || c.Time.Before(at(seconds(1.899))) || c.Time.After(at(seconds(1.9))) {
		t.Errorf("a commit of which only the second is known is not at the end of it: %+v", c)
	}
	has(t, squeezed(text(t, v)), "20:15:02 by its own date")
	has(t, html(t, v), "20:15:02 by its own date")
}

// TestCommitWithoutDate checks that a waiting commit, whose date is not in the record, is found by its subject, or is said to have no
// time.
func TestCommitWithoutDate(t *testing.T) {
	waiting := func(m *record.Manifest, files map[string][]byte) {
		files[record.CommitsName] = record.EncodeCommits([]record.Commit{{State: record.Pending, Inner: id(1), Outer: id(101), Tree: id(201), Subject: "sort"}})
		delete(files, record.ChangesName)
	}
	if c := short(t, waiting).Commits[0]; !c.Exact || !c.Time.Equal(at(seconds(1.7))) {
		t.Errorf("%+v", c)
	}
	// The id that the user's git and the commands know is named first.
	has(t, squeezed(text(t, short(t, waiting))), "waits as "+string(id(101)[:12])+", in the workspace "+string(id(1)[:12]), "git airlock diff "+string(id(101)[:12]))
	v := short(t, func(m *record.Manifest, files map[string][]byte) {
		waiting(m, files)
		files[record.ExecName] = lines(t, []record.Exec{ran(2, seconds(1.6), 0, 100, "git", "commit", "-qF", "message")})
	})
	if l := lane(t, v, "Commits"); len(l.Marks) != 0 || l.Hint() != "1 more without a known time" {
		t.Errorf("%+v", l)
	}
	has(t, html(t, v), "1 more without a known time")
}

// TestCommandWithoutFiles checks that a report does not claim a check that a command without names makes impossible.
func TestCommandWithoutFiles(t *testing.T) {
	v := short(t, nil)
	for _, shown := range []string{squeezed(text(t, v)), html(t, v)} {
		has(t, shown, "the command names none of the changed files", "!asked area")
	}
	v = short(t, func(m *record.Manifest, _ map[string][]byte) { m.Argv = []string{"./agent", "stock"} })
	has(t, v.Calm().String(), "All changed files are where the command names some: stock.")
}

// TestTwoIDs checks that both ids of a commit are shown, with the reason.
func TestTwoIDs(t *testing.T) {
	v := short(t, nil)
	has(t, squeezed(text(t, v)), "landed as "+string(id(101)[:12])+", in the workspace "+string(id(1)[:12]), v.NewID(), "| Equal numbers stay.")
	has(t, html(t, v), "<code>"+string(id(101)[:12])+"</code> · in the workspace <code>"+string(id(1)[:12]), "A commit has another id in your repository")
}

// TestAllProgramsCounted checks that the numbers of programs agree.
func TestAllProgramsCounted(t *testing.T) {
	v := short(t, nil)
	has(t, answer(t, v, "Ran"), "3 programs ran in all, 1 test among them")
	if l := lane(t, v, "Programs"); l.Count != 1 || l.Hidden != 1 || len(v.Programs) != 2 || v.Others != 1 {
		t.Errorf("%+v, %d listed, %d others", l, len(v.Programs), v.Others)
	}
	for _, shown := range []string{squeezed(text(t, v)), html(t, v)} {
		has(t, shown, "1 other program is not listed", "git airlock execs 3", "1 more not drawn")
	}
	absent := short(t, func(_ *record.Manifest, files map[string][]byte) {
		e := ran(4, seconds(1.8), 0, 0, "./gone")
		e.Exe, e.Exit, e.Millis = "", nil, nil
		files[record.ExecName] = append(files[record.ExecName], lines(t, []record.Exec{e})...)
	})
	has(t, answer(t, absent, "Ran"), "3 programs ran in all, 1 test among them, 1 other did not start")
	has(t, text(t, v), "✓ passed  ./test.sh (264 ms)", "✓ exit status 0  git commit -qm sort (100 ms)", "no host was asked for", "Changed lines are in the page: git airlock report 3 --open")
}

// TestRefusedOnce checks that a refused program counts once, although it is looked for in each folder of PATH.
func TestRefusedOnce(t *testing.T) {
	v := short(t, func(_ *record.Manifest, files map[string][]byte) {
		var execs []record.Exec
		for i, path := range []string{"/usr/local/bin/git", "/usr/bin/git", "/bin/git", "/bin/git"} {
			e := ran(uint64(i), seconds(1), 0, -1, "git", "push")
			e.PID, e.Path, e.Deny = 20, path, pointer("git push*")
			execs = append(execs, e)
		}
		files[record.ExecName] = lines(t, execs)
	})
	has(t, v.Verdict.String(), "2 programs were refused")
	has(t, answer(t, v, "Ran"), "0 programs ran in all, and 2 others were refused")
	has(t, answer(t, v, "Refused"), "2 programs by the rule git push*")
	has(t, text(t, v), "× refused: git push*  git push\n")
}

// TestCausesAndCommands checks what a report claims about the user's files, and that each command has a purpose beside it.
func TestCausesAndCommands(t *testing.T) {
	v := short(t, nil)
	has(t, answer(t, v, "Your files"), "changed: 1 commit landed in them",
		"to get the workspace as before this run, while the airlock exists: git airlock checkpoint restore 4", "to take the last landing back, while the airlock exists: git airlock undo")
	has(t, fmt.Sprint(v.Unseen), "Whether anything but landings changed your files")
	has(t, answer(t, v, "Unknown"), "1 thing of this run")
	for review, want := range map[string]string{"off": "by the rules of the gate, not by a person", "land": "by a person (airlock.review=land)", "push": "a push needs a person"} {
		has(t, answer(t, short(t, func(m *record.Manifest, _ map[string][]byte) { m.Review = review }), "Landed"), "1 commit on the branch feat/prices", want)
	}
	has(t, answer(t, short(t, func(m *record.Manifest, _ map[string][]byte) { m.Review = "" }), "Landed"), "!let through")
}

// TestAfterTheEnd checks that an event after the end of the command is called that.
func TestAfterTheEnd(t *testing.T) {
	v := short(t, nil)
	if v.Events[0].Text != "a run began" || v.Events[1].Text != "after the end: landed 1 commit" {
		t.Errorf("%+v", v.Events)
	}
}

// TestGeneralLimitsAreNotCounted checks that a limit of every record is not counted as unseen in this run.
func TestGeneralLimitsAreNotCounted(t *testing.T) {
	alike := func(m *record.Manifest, _ map[string][]byte) { m.Fingerprint.After = m.Fingerprint.Before }
	v := short(t, alike)
	if len(v.Unseen) != 0 || len(v.Always) != len(record.General()) {
		t.Errorf("%q, %q", v.Unseen, v.Always)
	}
	has(t, answer(t, v, "Unknown"), "nothing of this run in particular", fmt.Sprintf("and %d things of every run", len(record.General())))
	v = short(t, func(m *record.Manifest, files map[string][]byte) { alike(m, files); m.Recovered = true })
	has(t, answer(t, v, "Unknown"), "1 thing of this run")
	has(t, html(t, v), "<h3>In this run</h3>", "<h3>In every run, or not exactly</h3>")
}

// TestSmallUsageIsDrawnSmall checks that a plot of little use is low, that few measurements make no plot, and that unwritten bytes are
// not claimed to be none.
func TestSmallUsageIsDrawnSmall(t *testing.T) {
	measured := func(n int) report.View {
		return short(t, func(_ *record.Manifest, files map[string][]byte) {
			var samples []record.Sample
			for i := range int64(n) {
				samples = append(samples, record.Sample{Millis: i * 200, CPU: i * 20, Memory: 11 << 20})
			}
			files[record.ResourcesName] = record.EncodeSamples(samples)
		})
	}
	if v := measured(3); len(v.Axis.Plots) != 0 {
		t.Errorf("%+v", v.Axis.Plots)
	}
	v := measured(6)
	if len(v.Axis.Plots) != 2 {
		t.Fatalf("%+v", v.Axis.Plots)
	}
	for _, plot := range v.Axis.Plots {
		for _, point := range plot.Points {
			if point[1] > 20 {
				t.Errorf("%s is at %g %%", plot.Name, point[1])
			}
		}
	}
	has(t, squeezed(text(t, v)), "100 ms of processor time, at most 11 MiB of memory", "!disk")
}

// TestFactsInWords checks the facts that a stranger did not understand.
func TestFactsInWords(t *testing.T) {
	v := short(t, func(m *record.Manifest, _ map[string][]byte) {
		m.Policy = []string{"builtin", "team:" + string(id(7)), "user"}
	})
	shown := squeezed(text(t, v))
	has(t, shown, "7f3a, started 20 November 2026, 20:15:01 UTC", "git airlock report 20261120T201501Z-7f3a/2", "native (no container", "without changes that were not committed",
		"those of git-airlock, those of the team's policy "+string(id(7)[:12])+" and those of your policy file", "compares the files of the record with their hashes")
	for _, w := range v.Words() {
		has(t, shown, w.Name+" "+w.Meaning)
	}
	has(t, squeezed(text(t, short(t, func(m *record.Manifest, _ map[string][]byte) { m.Run = 1 }))), "!run before it")
}
