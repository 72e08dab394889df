package report

import (
	"fmt"
	"strconv"

	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// answers answers the questions in the documentation of this package.
func (m *material) answers(v View) []Answer {
	return []Answer{
		m.ranAnswer(), m.landedAnswer(), m.testsAnswer(), m.reachedAnswer(v),
		m.refusedAnswer(v), m.changedAnswer(v), m.filesAnswer(), unknownAnswer(v),
	}
}

func (m *material) ranAnswer() Answer {
	a := Answer{Question: "What ran, for how long, and how did it end?", Name: "Ran", Level: Good}
	end := "its end was not seen"
	switch {
	case m.Signal != "":
		end, a.Level = "ended by "+string(m.Signal), Bad
	case m.Exit != nil:
		end = fmt.Sprintf("exit status %d", *m.Exit)
	}
	if m.Exit == nil || *m.Exit != 0 {
		a.Level = Bad
	}
	a.Text = Text(fmt.Sprintf("%s, %s, %s", m.who(), took(m.length()), end))
	if m.has[record.ExecName] {
		a.Detail = []Text{m.ranInAll()}
	}
	return a
}

// ranInAll returns the numbers of programs in words. Their sum is the number that the axis shows.
func (m *material) ranInAll() Text {
	refused, unstarted, tests := m.refusedPrograms(), m.countPrograms(program.unstarted), m.countPrograms(func(p program) bool { return p.test })
	text := words.Count(len(m.programs)-refused-unstarted, "program") + " ran"
	if m.Unlisted.Programs == 0 {
		text += " in all"
	}
	if tests > 0 {
		text += ", " + words.Count(tests, "test") + " among them"
	}
	if unstarted > 0 {
		text += ", " + words.Count(unstarted, "other") + " did not start"
	}
	if refused > 0 {
		text += ", and " + were(refused, "other") + " refused"
	}
	if n := int(m.Unlisted.Programs); n > 0 {
		text += ", and " + are(n, "other") + " not in the record"
	}
	return Text(text)
}

func (m *material) landedAnswer() Answer {
	a := Answer{Question: "Which commits landed, on which branch, and which ones wait for what?", Name: "Landed", Level: Good}
	text := fmt.Sprintf("%s on the branch %s", words.Count(m.count(record.Landed), "commit"), m.branch().Raw())
	if how := m.letThrough(); how != "" && m.count(record.Landed) > 0 {
		a.Detail = []Text{Text(how)}
	}
	if n := m.count(record.Pending) + m.count(record.Inner); n > 0 {
		text, a.Level = text+", "+waits(n), Look
	} else if len(m.Waiting) == 0 {
		text += ", none waits"
	}
	if other := m.elsewhere(); other != "" {
		text, a.Level = text+", "+other, Look
	}
	for _, h := range m.Held {
		a.Detail = append(a.Detail, Text("why it waits: "+h.Reason))
	}
	for _, w := range m.Waiting {
		a.Detail = append(a.Detail, Text(onRef(w)))
	}
	a.Text = Text(text)
	return a
}

// elsewhere describes commits on other branches of the workspace than main. It is empty without any. It gives no sum for several branches,
// because a commit can be on each of them.
func (m *material) elsewhere() string {
	switch len(m.Waiting) {
	case 0:
		return ""
	case 1:
		return waits(m.Waiting[0].Commits) + " on another branch of the workspace"
	}
	return fmt.Sprintf("commits wait on %d other branches of the workspace", len(m.Waiting))
}

// onRef describes commits on an inner ref other than main.
func onRef(w record.Waiting) string {
	return words.Count(w.Commits, "commit") + " on " + w.Ref + ", which does not land by itself"
}

// letThrough describes who decided that commits land: a person, or the rules of the gate.
func (m *material) letThrough() string {
	switch m.Review {
	case "land":
		return "let through by a person (airlock.review=land)"
	case "push":
		return "let through by the rules of the gate (a push needs a person's approval)"
	case "off":
		return "let through by the rules of the gate, not by a person"
	}
	return ""
}

func (m *material) testsAnswer() Answer {
	a := Answer{Question: "Which tests ran, did they pass, and was anything committed after the last one?", Name: "Tests", Level: Good}
	s := m.suite()
	switch {
	case !m.has[record.ExecName]:
		a.Level, a.Text = Look, "unknown, because programs are not recorded"
		return a
	case s.last == nil:
		a.Level, a.Text = Look, "none of the programs looks like a test"
		return a
	case s.last.Exit == nil:
		a.Level, a.Text = Look, "the result of the last run is unknown"
	case *s.last.Exit != 0:
		a.Level, a.Text = Bad, "the last run failed"
	default:
		a.Text = "the last run passed"
		if s.after > 1 {
			a.Level = Look
		}
	}
	a.Detail = []Text{
		Text(m.clock(s.last.Time) + " " + commandOf(s.last.Argv).Raw()),
		Text(fmt.Sprintf("%s, %d failed", words.Count(s.runs, "run"), s.failed)),
		Text(were(s.after, "commit") + " made after it" + s.meaning()),
	}
	a.Detail = append(a.Detail, m.otherTests(s)...)
	return a
}

// meaning describes what it means that commits were made after the last test.
func (s suite) meaning() string {
	passed := s.last.Exit != nil && *s.last.Exit == 0
	switch {
	case passed && s.after == 1:
		return ": first the test, then the commit"
	case passed && s.after > 1:
		return ", and no test ran again"
	}
	return ""
}

func (m *material) reachedAnswer(v View) Answer {
	a := Answer{Question: "Which hosts did it reach, and how much did it send?", Name: "Reached", Level: Good}
	var sent int64
	for _, h := range v.Hosts {
		if h.Level == Good {
			sent += h.Sent
			a.Detail = append(a.Detail, h.Name)
		}
		if h.refusing {
			sent += h.Sent
			a.Level, a.Detail = Look, append(a.Detail, Text(h.Name.Raw()+", "+h.Result.Raw()))
		}
	}
	switch {
	case m.Network == "none":
		a.Text = "nothing: it had no network"
	case !m.has[record.EgressName]:
		a.Level, a.Text = Look, Text(fmt.Sprintf("unknown: the network was %s, and is not recorded", m.Network))
	case len(a.Detail) == 0:
		a.Text = "no host"
	default:
		a.Text = Text(fmt.Sprintf("%s, %s sent", words.Count(len(a.Detail), "host"), words.Bytes(sent)))
	}
	return a
}

func (m *material) refusedAnswer(v View) Answer {
	a := Answer{Question: "What was refused, and why?", Name: "Refused", Level: Good, Text: "nothing"}
	refused := 0
	for _, f := range v.First {
		if f.Kind == "Refused" {
			refused++
			a.Detail = append(a.Detail, f.Text)
		}
	}
	if refused > 0 {
		a.Level, a.Text = Bad, Text(words.Count(refused, "refusal"))
	} else if !m.has[record.ExecName] || m.Unlisted != (record.Unlisted{}) {
		a.Text = "nothing, as far as it is recorded"
	}
	for _, h := range v.Hosts {
		if h.Level == Plain {
			a.Detail = append(a.Detail, Text(h.refusal()))
		}
	}
	return a
}

func (m *material) changedAnswer(v View) Answer {
	a := Answer{Question: "Which files changed, and which of these are outside of what the command names?", Name: "Changed", Level: Good}
	added, removed := 0, 0
	var paths []Text
	for _, c := range v.Commits {
		added, removed = added+c.Added, removed+c.Removed
		for _, f := range c.Files {
			paths = append(paths, f.Path)
		}
	}
	paths = words.Unique(paths)
	outside := v.outside()
	switch {
	case !m.has[record.ChangesName] && m.count(record.Landed) > 0:
		a.Level, a.Text = Look, "unknown, because the changes are not in the record"
		return a
	case len(paths) == 0 && len(m.Waiting) > 0:
		a.Level, a.Text = Look, "no file, without the commits that wait"
		return a
	case len(paths) == 0:
		a.Text = "no file"
		return a
	case len(outside) > 0:
		a.Level = Look
		a.Detail = []Text{Text(fmt.Sprintf("%d outside of what the command names", len(outside)))}
	case m.area.known():
		a.Detail = []Text{"none outside of what the command names"}
	default:
		a.Detail = []Text{"the task names no file, so none of them was asked for"}
	}
	a.Text = Text(changes(added, removed, len(paths)) + " in commits")
	if m.count(record.Pending)+len(m.Waiting) > 0 {
		a.Text += ", without the commits that wait"
	}
	a.Detail = append(paths[:min(3, len(paths)):min(3, len(paths))], a.Detail...)
	if c := m.Checkpoints; c.Before > 0 && c.After > c.Before {
		a.Detail = append(a.Detail, Text(fmt.Sprintf("with files that are not committed: git airlock checkpoint diff %d %d", c.Before, c.After)))
	}
	return a
}

func (m *material) filesAnswer() Answer {
	a := Answer{Question: "Are the user's own files as before, and which checkpoint leads back?", Name: "Your files", Level: Good}
	before, after := m.Fingerprint.Before, m.Fingerprint.After
	switch {
	case before.Tree == "" || after.Tree == "":
		a.Level, a.Text = Look, "unknown"
	case before == after:
		a.Text = Text(fmt.Sprintf("index and %s as before", words.Count(before.Files, "file")))
	case m.count(record.Landed) > 0:
		a.Text = Text("changed: " + words.Count(m.count(record.Landed), "commit") + " landed in them")
	default:
		a.Level, a.Text = Look, "changed during the run"
	}
	if n := m.Checkpoints.Before; n > 0 {
		a.Detail = append(a.Detail, Text(fmt.Sprintf("to get the workspace as before this run, while the airlock exists: git airlock checkpoint restore %d", n)))
	} else {
		a.Detail = append(a.Detail, Text(m.Checkpoints.Missing()))
	}
	if m.count(record.Landed) > 0 {
		commits, others := m.otherLandings()
		a.Detail = append(a.Detail, Text("to take the last landing back, while the airlock exists: git airlock undo"+commits))
		if others != "" { // a line of its own: long ones are cut
			a.Detail = append(a.Detail, Text(others))
		}
	}
	return a
}

// otherLandings describes how many commits an undo of the last landing takes back, and how many landings there are before it. If there is only
// one landing, both texts are empty.
func (m *material) otherLandings() (commits, others string) {
	landings, last := 0, record.Event{}
	for _, e := range m.events {
		if e.Kind == record.EventLand {
			landings, last = landings+1, e
		}
	}
	if landings < 2 {
		return "", ""
	}
	others = are(landings-1, "landing") + " before it" + verb(landings-1, ", which needs", ", each of which needs") + " another undo"
	if n, err := strconv.Atoi(last.Data["count"]); err == nil {
		commits = " (" + words.Count(n, "commit") + ")"
	}
	return commits, others
}

func unknownAnswer(v View) Answer {
	a := Answer{Question: "What is unknown, because nothing could see it?", Name: "Unknown", Level: Good, Text: "nothing of this run in particular"}
	if n := len(v.Unseen); n > 0 {
		a.Text = Text(words.Count(n, "thing") + " of this run")
	}
	if n := len(v.Always); n > 0 {
		a.Detail = []Text{Text(fmt.Sprintf("and %s of every run", words.Count(n, "thing"))), `see "What could not be seen"`}
	}
	return a
}
