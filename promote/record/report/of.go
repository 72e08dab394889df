package report

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
)

// Of returns the view of a record, with everything in it. What cannot be read in the record is listed as unseen.
func Of(r record.Run) View {
	m := decode(r)
	v := View{
		Version: Version, Level: Good, Verdict: Text(m.verdict()), Run: m.run(), Unseen: m.unseen(),
		Commits: m.viewCommits(), Programs: m.viewPrograms(), Hosts: m.hosts, Events: m.viewEvents(), Output: m.output,
	}
	v.Axis = m.axis(v.Commits)
	v.First = m.findings(v)
	for _, f := range v.First {
		v.Level = v.Level.worse(f.Level)
	}
	v.Answers = m.answers(v)
	return v
}

// material is a record with decoded files, and what several parts of a view need. Lists of files that the record does not have
// are empty.
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
	changed  []string        // what differs from the hashes in the record
	area     scope
}

// commit is a commit with what else the record has about it.
type commit struct {
	record.Commit
	patch
	at time.Time // zero if it is not known
}

func decode(r record.Run) *material {
	m := &material{Manifest: r.Manifest, ref: r.Ref, commit: r.Commit, has: map[string]bool{}}
	var execs []record.Exec
	var commits []record.Commit
	var err error
	m.events, err = r.Events()
	m.note(record.EventsName, err)
	execs, err = r.Execs()
	m.note(record.ExecName, err)
	m.egress, err = r.Egress()
	m.note(record.EgressName, err)
	m.samples, err = r.Samples()
	m.note(record.ResourcesName, err)
	commits, err = r.Commits()
	m.note(record.CommitsName, err)
	changes, err := r.Text(record.ChangesName)
	m.note(record.ChangesName, err)
	if r.Files[record.SumsName] != nil { // a record that is being made has none yet
		m.changed = r.Verify()
	}
	m.output = lastLines(r.Files[record.StdoutName])
	m.programs = programsOf(execs)
	m.hosts = hostsOf(m.egress)
	m.commits = m.commitsOf(commits, changes)
	m.area = scopeOf(m.Argv, m.commits)
	return m
}

// note keeps whether a file could be read. A file may be readable in part.
func (m *material) note(name string, err error) {
	m.has[name] = !errors.Is(err, record.ErrAbsent)
	if err != nil && m.has[name] {
		m.broken = append(m.broken, err.Error())
	}
}

// shownOutput is how many lines of a command's output a report shows.
const shownOutput = 12

// lastLines returns the last lines of an output.
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

// commitsOf adds changes and times to commits. The time is that of the event which names the commit, or else the author's, which
// the agent chose, if it is within the run.
func (m *material) commitsOf(commits []record.Commit, changes []byte) (all []commit) {
	patches := patchesOf(commits, changes)
	for i, c := range commits {
		x := commit{Commit: c, patch: patches[i]}
		if at := x.authored; !at.Before(m.Started.Add(-time.Second)) && !at.After(m.Ended.Add(time.Second)) {
			x.at = at
		}
		for _, e := range m.events {
			if e.Kind == record.EventLand && names(e.Data, c) {
				x.at = e.Time
			}
		}
		all = append(all, x)
	}
	return all
}

// names reports whether one of the details of an event is the id of a commit.
func names(data map[string]string, c record.Commit) bool {
	for _, value := range data {
		if value != "" && (value == string(c.Outer) || value == string(c.Inner)) {
			return true
		}
	}
	return false
}

func (m *material) run() Run {
	return Run{
		Session: Text(m.Session), Number: m.Run, Command: Text(m.Command(2000)), Status: Text(m.Status), Branch: m.branch(),
		Started: m.Started, Ended: m.Ended, Facts: m.facts(),
	}
}

func (m *material) branch() Text { return Text(strings.TrimPrefix(m.Branch, "refs/heads/")) }

func (m *material) facts() (facts []Fact) {
	add := func(name, format string, values ...any) {
		facts = append(facts, Fact{name, Text(fmt.Sprintf(format, values...))})
	}
	add("Record", "%s", cmp.Or(m.ref, record.Ref(m.Session, m.Run)))
	if m.commit != "" {
		add("Record's commit", "%s", m.commit)
	}
	add("To check it", "git airlock inspect %d --verify", m.Run)
	add("Snapshot of", "%s", orNone(short(m.Base)))
	add("Branch", "%s before, %s after", orNone(short(m.Outer.Before)), orNone(short(m.Outer.After)))
	add("Prison", "%s", m.prison())
	if len(m.Weaker) > 0 {
		add("Weaker than asked", "%s", strings.Join(m.Weaker, "; "))
	}
	if len(m.Policy) > 0 {
		add("Rules of the gate", "%s", strings.Join(m.Policy, ", "))
	}
	add("Variables passed", "%s", orNone(strings.Join(m.Environment, ", ")))
	if n := len(m.samples); n > 0 {
		last := m.samples[n-1]
		add("Used", "%s of processor time, at most %s of memory, %s written to disk",
			took(time.Duration(max(0, last.CPU))*time.Millisecond), memory(m.highestMemory()), byteCount(max(0, last.Written)))
	}
	add("Program", "git-airlock %s", m.Program)
	return facts
}

func (m *material) prison() string {
	parts := []string{m.Backend}
	if m.Isolation.Runtime != "" {
		parts = append(parts, "runtime "+m.Isolation.Runtime)
	}
	parts = append(parts, "network "+orNone(m.Network))
	if m.Isolation.Memory > 0 {
		parts = append(parts, memory(m.Isolation.Memory)+" of memory")
	}
	if m.Isolation.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("%g cores", m.Isolation.CPUs))
	}
	if m.Isolation.PIDs > 0 {
		parts = append(parts, fmt.Sprintf("%d processes", m.Isolation.PIDs))
	}
	return strings.Join(parts, ", ")
}

func (m *material) highestMemory() (highest int64) {
	for _, s := range m.samples {
		highest = max(highest, s.Memory)
	}
	return highest
}

func short(id gitops.OID) string { return string(id[:min(12, len(id))]) }

func orNone(text string) string { return cmp.Or(text, "none") }

// unseen returns what nobody could see, from what the record says and from what it does not have.
func (m *material) unseen() (all []Text) {
	add := func(format string, values ...any) { all = append(all, sentence(fmt.Sprintf(format, values...))) }
	for _, line := range m.Visibility {
		add("%s", line)
	}
	said := strings.Join(m.Visibility, "\n")
	if m.has[record.ExecName] && !strings.Contains(said, "built") {
		add("programs are recorded, but not the commands that a shell has built in, nor code inside of an interpreter")
	}
	for _, x := range []struct {
		name, what string
		needed     bool
	}{
		{record.ExecName, "which programs ran is not recorded", !strings.Contains(said, "rograms that ran")},
		{record.EgressName, "what the network reached is not recorded", m.Network != "none"},
		{record.ResourcesName, "processor time and memory were not measured", !strings.Contains(said, "memory were not")},
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
			add("%s is not complete: %s were left out", name, byteCount(f.Cut))
		}
	}
	if m.Recovered {
		add("the processes that watched the run died, so that its last moments may be missing")
	}
	for _, reason := range m.broken {
		add("a part of the record cannot be read, and is not shown: %s", reason)
	}
	return all
}

// sentence returns a text with a capital letter and without a full stop, as the lines of a list.
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
		if e.Kind != record.EventExport {
			all = append(all, Event{e.Time, eventLevel(e), Text(e.Kind), Text(e.Text)})
		}
	}
	return all
}

func eventLevel(e record.Event) Level {
	switch {
	case e.Kind == record.EventDenied || e.Level.AtLeast(record.Failure):
		return Bad
	case e.Kind == record.EventHold || e.Level.AtLeast(record.Warning):
		return Look
	}
	return Good
}
