package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// Of returns the view of a record, with everything in it. It lists the parts of the record that cannot be read as unseen.
func Of(r record.Run) View { return Making(r, nil) }

// Making is like Of, for a record that is being made. execs are the programs in it, if they are decoded already.
func Making(r record.Run, execs []record.Exec) View {
	m := decode(r, execs)
	v := View{
		Version: Version, Level: Good, Verdict: Text(m.sentence()), Run: m.run(), Asked: m.area.named,
		Commits: m.viewCommits(), Programs: m.viewPrograms(), Hosts: m.hosts, Events: m.viewEvents(), Output: m.output,
	}
	v.Unseen, v.Always = m.unseen()
	v.Others = len(m.programs) - len(v.Programs)
	v.Axis = m.axis(v.Commits)
	v.First = m.findings(v)
	for _, f := range v.First {
		if rank(f.Level) > rank(v.Level) {
			v.Level = f.Level
		}
	}
	v.Answers = m.answers(v)
	return v
}

// material is a record with its files decoded, and with data that several parts of a view need. If the record does not have a file, the list
// from this file is empty.
type material struct {
	record.Manifest
	ref      string
	commit   gitops.OID
	events   []record.Event
	egress   []record.Egress
	samples  []record.Sample
	commits  []commit
	programs []program
	hosts    []Host
	output   []Text
	has      map[string]bool // names of files that could be read
	broken   []string        // files that could not be read, with the reason
	changed  []string        // the differences between the record and the hashes in it
	area     scope
}

// commit is a commit of the record with its patch, and with the time at which it was made.
type commit struct {
	record.Commit
	patch
	made
}

func decode(r record.Run, execs []record.Exec) *material {
	m := &material{Manifest: r.Manifest, ref: r.Ref, commit: r.Commit, has: map[string]bool{}}
	var commits []record.Commit
	var err error
	m.events, err = r.Events()
	m.note(record.EventsName, err)
	var execsErr error // nil if the caller has decoded the programs
	if execs == nil {
		execs, execsErr = r.Execs()
	}
	m.note(record.ExecName, execsErr)
	m.egress, err = r.Egress()
	m.note(record.EgressName, err)
	m.samples, err = r.Samples()
	m.note(record.ResourcesName, err)
	commits, err = r.Commits()
	m.note(record.CommitsName, err)
	changes, err := r.Text(record.ChangesName)
	m.note(record.ChangesName, err)
	m.changed = r.Faults
	if r.Commit == "" && r.Files[record.SumsName] != nil { // not from a repository, where loading it has verified it; a record that is being made has no hashes yet
		m.changed = r.Verify()
	}
	m.output = lastLines(r.Files[record.StdoutName])
	m.programs = programsOf(execs)
	m.hosts = m.hostsOf(m.egress)
	m.findRefused()
	for i, p := range patchesOf(commits, changes) {
		m.commits = append(m.commits, commit{Commit: commits[i], patch: p})
	}
	m.timeCommits()
	m.area = scopeOf(m.Argv, m.commits)
	return m
}

// note notes whether the record has a file, and the error of reading it. A file with an error may have been read in part.
func (m *material) note(name string, err error) {
	m.has[name] = !errors.Is(err, record.ErrAbsent)
	if err != nil && m.has[name] {
		m.broken = append(m.broken, err.Error())
	}
}

// shownOutput is how many lines of a command's output a report shows.
const shownOutput = 12

func lastLines(output []byte) (lines []Text) {
	output = output[max(0, len(output)-64<<10):]
	all := strings.Split(strings.TrimRight(string(output), "\n"), "\n")
	for _, line := range all[max(0, len(all)-shownOutput):] {
		if line = strings.TrimRight(line, "\r"); line != "" || len(lines) > 0 {
			lines = append(lines, Text(line))
		}
	}
	return lines
}

func (m *material) run() Run {
	level, meaning := m.statusMeaning()
	return Run{
		Level: level, Meaning: Text(meaning), Session: Text(m.Session), Number: m.Run, Command: Text(words.Shorten(m.CommandLine().Raw(), 2000)), Status: Text(m.Status), Branch: m.branch(),
		Started: m.Started, Ended: m.Ended, Facts: m.facts(),
	}
}

func (m *material) branch() Text { return Text(strings.TrimPrefix(m.Branch, "refs/heads/")) }

// unseen returns sentences about what nobody could see: those in the record, and one for each part that the record does not have. Sentences that
// hold for every run are in always.
func (m *material) unseen() (all, always []Text) {
	add := func(format string, values ...any) { all = append(all, sentence(fmt.Sprintf(format, values...))) }
	for _, line := range m.Visibility {
		if slices.Contains(record.General(), line) {
			always = append(always, sentence(line))
			continue
		}
		add("%s", line)
	}
	said := func(sentence string) bool { return slices.Contains(m.Visibility, sentence) }
	if m.has[record.ExecName] && !said(record.UnseenInside) {
		always = append(always, sentence(record.UnseenInside))
	}
	for _, x := range []struct {
		name, what string
		needed     bool
	}{
		{record.ExecName, "which programs ran is not recorded", !said(record.UnseenPrograms)},
		{record.EgressName, "what the network reached is not recorded", m.Network != "none"},
		{record.ResourcesName, record.UnseenResources, !said(record.UnseenResources)},
		{record.CommitsName, "the commits are not in the record", true},
		{record.ChangesName, "the changes of the commits are not in the record", m.count(record.Landed) > 0},
		{record.EventsName, "events are not recorded", true},
	} {
		if !m.has[x.name] && x.needed {
			add("%s: %s", x.what, cmp.Or(m.Absent[x.name], "no reason is given"))
		}
	}
	for _, name := range record.Names() {
		if f := m.Files[name]; f.Cut > 0 {
			add("%s is not complete: %s were left out", name, words.Bytes(f.Cut))
		}
	}
	switch before, after := m.Fingerprint.Before, m.Fingerprint.After; {
	case before.Tree == "" || after.Tree == "":
		add("your files before and after the run were not compared")
	case before != after && m.count(record.Landed) > 0:
		add("whether anything but landings changed your files: both change their times, and are not told apart")
	}
	if m.Recovered {
		add("the processes that watched the run died, so that its last moments may be missing")
	}
	for _, reason := range m.broken {
		add("a part of the record cannot be read, and is not shown: %s", reason)
	}
	return all, always
}

// sentence returns a text as a line of a list: it begins with a capital letter, and has no full stop.
func sentence(text string) Text {
	text = strings.TrimSuffix(text, ".")
	if text != "" && text[0] >= 'a' && text[0] <= 'z' {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return Text(text)
}

// viewEvents returns the events. Exports are left out: each landing follows one.
func (m *material) viewEvents() (all []Event) {
	for _, e := range m.events {
		text := e.Text
		if e.Time.After(m.Ended) {
			text = "after the end: " + text
		}
		if e.Kind != record.EventExport {
			all = append(all, Event{e.Time, m.eventLevel(e), Text(e.Kind), Text(text)})
		}
	}
	return all
}

// unneeded reports whether an event is the refusal of a host that the agent works without.
func (m *material) unneeded(e record.Event) bool {
	refusal := record.Egress{Kind: control.KindRefusal, Name: e.Data["host"], Reason: e.Data["reason"]}
	return e.Kind == record.EventDenied && refusal.For(m.Unneeded)
}

func (m *material) eventLevel(e record.Event) Level {
	switch {
	case m.unneeded(e):
		return Plain
	case e.Kind == record.EventDenied || e.Level.AtLeast(record.Failure):
		return Bad
	case e.Kind == record.EventHold || e.Level.AtLeast(record.Warning):
		return Look
	}
	return Good
}
