package report

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// sentence describes the run in one sentence: who ran for how long, how the command ended, what landed, and what else a reader should know.
func (m *material) sentence() string {
	sentence := fmt.Sprintf("%s %s and %s", m.who(), m.ended(), m.landedWords())
	if besides := m.besides(); len(besides) > 0 {
		sentence += "; " + list(besides)
	}
	switch m.Status {
	case record.IsolationBroken:
		return "A wall of the prison was broken: " + sentence + "."
	case record.InvariantBroken:
		return "A promise of git-airlock was broken: " + sentence + "."
	}
	return sentence + "."
}

// besides returns what the sentence adds: waiting commits, failed tests and refusals.
func (m *material) besides() (all []string) {
	if n := m.count(record.Pending) + m.count(record.Inner); n > 0 {
		text := waits(n)
		if len(m.Held) > 0 {
			text += " (" + reasons(m.Held) + ")"
		}
		all = append(all, text)
	}
	if other := m.elsewhere(); other != "" {
		all = append(all, other)
	}
	if last := m.suite().last; last != nil && last.Exit != nil && *last.Exit != 0 {
		text := "the last tests failed"
		if len(m.suite().others) > 0 {
			text = fmt.Sprintf("the last tests (%s) failed", commandOf(last.Argv).Raw())
		}
		all = append(all, text)
	}
	return append(all, m.refused()...)
}

// statusMeaning returns the level of the status, and what it means if its word could mislead.
func (m *material) statusMeaning() (Level, string) {
	switch m.Status {
	case record.Completed:
		return Good, ""
	case record.CompletedHeld:
		return Look, ""
	case record.Denied:
		if m.Exit != nil && *m.Exit == 0 {
			return Look, "something was refused, and the command ended by itself with exit status 0"
		}
		return Look, "something was refused"
	}
	return Bad, ""
}

// refused returns how many programs, requests and connections were refused, in words.
func (m *material) refused() (all []string) {
	requests, connections := 0, 0
	for _, h := range m.hosts {
		if h.Level == Bad {
			requests, connections = requests+h.Requests, connections+h.Connections
		}
	}
	for _, x := range []struct {
		n     int
		thing string
	}{{m.refusedPrograms(), "program"}, {requests, "request"}, {connections, "connection"}} {
		if x.n > 0 {
			all = append(all, were(x.n, x.thing)+" refused")
		}
	}
	return all
}

func (m *material) refusedPrograms() int {
	return m.countPrograms(func(p program) bool { return p.Deny != nil })
}

// countPrograms returns the number of programs with a property.
func (m *material) countPrograms(has func(program) bool) (n int) {
	for _, p := range m.programs {
		if has(p) {
			n++
		}
	}
	return n
}

func (m *material) who() string {
	if m.Agent != "" {
		return m.Agent
	}
	if len(m.Argv) == 0 {
		return "The command"
	}
	return path.Base(m.Argv[0])
}

// ended returns how the command ended.
func (m *material) ended() string {
	length := took(m.length())
	switch m.Status {
	case record.Timeout:
		return fmt.Sprintf("was ended after %s, when its time was over,", length)
	case record.Stopped:
		return fmt.Sprintf("was stopped after %s", length)
	case record.Limited:
		return fmt.Sprintf("was ended after %s by a limit (%s)", length, orNone(strings.Join(m.LimitsHit, ", ")))
	}
	switch {
	case m.Signal != "":
		return fmt.Sprintf("was ended by %s after %s", m.Signal, length)
	case m.Exit == nil:
		return fmt.Sprintf("ran for %s, its end was not seen,", length)
	case *m.Exit != 0:
		return fmt.Sprintf("failed with exit status %d after %s", *m.Exit, length)
	}
	return fmt.Sprintf("ran for %s", length)
}

func (m *material) landedWords() string {
	if n := m.count(record.Landed); n > 0 {
		return fmt.Sprintf("landed %s on %s", words.Count(n, "commit"), m.branch().Raw())
	}
	return "landed nothing on " + orNone(m.branch().Raw())
}

func (m *material) count(state record.CommitState) (n int) {
	for _, c := range m.commits {
		if c.State == state {
			n++
		}
	}
	if state == record.Landed && !m.has[record.CommitsName] {
		return m.Landed
	}
	return n
}

func waits(n int) string { return words.Count(n, "commit") + verb(n, " waits", " wait") }

func reasons(holds []record.Hold) string {
	var all []string
	for _, h := range holds {
		all = append(all, h.Reason)
	}
	return list(words.Unique(all))
}

// findings returns what to look at first, the worst first.
func (m *material) findings(v View) (all []Finding) {
	add := func(level Level, kind, where string, detail []Text, format string, values ...any) {
		all = append(all, Finding{level, kind, Text(fmt.Sprintf(format, values...)), where, detail})
	}
	if len(m.changed) > 0 { // before everything else that is bad
		add(Bad, "Changed", "record", texts(m.changed), "the record is not as it was made, so that nothing here is certain")
	}
	before := len(all)
	m.refusalFindings(v, add)
	m.statusFinding(len(all) > before, add)
	m.testFinding(add)
	for _, h := range v.Hosts {
		if h.refusing {
			add(Look, "Answers", "network", nil, "%s, %s", h.Name.Raw(), h.Result.Raw())
		}
	}
	for _, h := range m.Held {
		add(Look, "Held", "events", texts(h.Paths), "%s: %s", h.Reason, h.Message)
	}
	for _, w := range m.Waiting {
		add(Look, "Elsewhere", "commits", []Text{Text(w.Next)}, "%s", onRef(w))
	}
	for _, f := range m.Flagged {
		add(Look, "Flagged", "commits", nil, "%s landed, and the rule %s has a finding in it: %s", m.subject(f.Commit), f.Rule, f.Meaning)
	}
	if n := m.count(record.Inner); n > 0 {
		add(Look, "Not exported", "commits", nil, "%s only in the workspace when the run ended", are(n, "commit"))
	}
	disputed, unread := m.disputed()
	if len(disputed) > 0 {
		add(Look, "Disputed", "programs", disputed, "%s had other arguments than the call, or changed them: the file that ran is certain, the arguments are not", words.Count(len(disputed), "program"))
	}
	if len(unread) > 0 {
		add(Look, "Disputed", "programs", unread, "%s ended before the arguments could be compared", words.Count(len(unread), "program"))
	}
	for _, s := range m.stalls() {
		add(Look, "Idle", "time", nil, "nothing happened for %s from %s", took(s.took), m.clock(s.from))
	}
	if outside := v.outside(); len(outside) > 0 {
		add(Look, "Outside", "commits", outside, "%s not where the command names files", are(len(outside), "changed file"))
	}
	for _, e := range v.Events {
		if e.Level != Good && e.Kind != Text(record.EventDenied) && e.Kind != Text(record.EventHold) {
			add(e.Level, "Event", "events", nil, "%s %s", m.clock(e.Time), e.Text.Raw())
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return rank(b.Level) - rank(a.Level) })
	return all
}

// subject returns the subject of a landed commit, or its id.
func (m *material) subject(id gitops.OID) string {
	for _, c := range m.commits {
		if c.Outer == id {
			return strconv.Quote(c.Subject.Raw())
		}
	}
	return short(id)
}

// adder adds a finding.
type adder = func(level Level, kind, where string, detail []Text, format string, values ...any)

// statusFinding adds the status, unless refusals explain it.
func (m *material) statusFinding(refused bool, add adder) {
	if m.Status == record.Completed || m.Status == record.CompletedHeld || m.Status == record.Denied && refused {
		return
	}
	text, more := string(m.Status), m.Reasons
	if len(m.Reasons) > 0 { // the first reason explains the status
		text, more = m.Reasons[0], m.Reasons[1:]
	}
	add(Bad, "Ended", "record", texts(more), "%s", text)
}

// refusalFindings adds refused programs by rule, refused connections by host, and refusals that only the events name.
func (m *material) refusalFindings(v View, add adder) {
	byRule := map[string][]Text{}
	var rules []string
	for _, p := range m.programs {
		if p.Deny != nil {
			if byRule[*p.Deny] == nil {
				rules = append(rules, *p.Deny)
			}
			byRule[*p.Deny] = append(byRule[*p.Deny], commandOf(p.Argv))
		}
	}
	for _, rule := range rules {
		add(Bad, "Refused", "programs", words.Unique(byRule[rule]), "%s by the rule %s", words.Count(len(byRule[rule]), "program"), rule)
	}
	for _, h := range v.Hosts {
		if h.Level == Bad {
			add(Bad, "Refused", "network", nil, "%s", h.refusal())
		}
	}
	for _, e := range m.events {
		if e.Kind == record.EventDenied && !m.counted(e) && !m.unneeded(e) {
			add(Bad, "Refused", "events", nil, "%s %s", m.clock(e.Time), e.Text)
		}
	}
}

// counted reports whether a refusal is also in the record of programs or in the record of the network. Events of the network name a host.
func (m *material) counted(e record.Event) bool {
	if _, network := e.Data["host"]; network {
		return m.has[record.EgressName]
	}
	return m.has[record.ExecName]
}

func (m *material) testFinding(add adder) {
	s := m.suite()
	switch {
	case s.last == nil:
	case s.last.Exit == nil:
		add(Look, "Tests", "programs", nil, "the result of the last run of %s was not seen", commandOf(s.last.Argv).Raw())
	case *s.last.Exit != 0:
		add(Bad, "Tests", "programs", m.otherTests(s), "the last run of %s failed at %s%s", commandOf(s.last.Argv).Raw(), m.clock(s.last.Time), afterwards(s.after))
	case s.after > 1:
		add(Look, "Tests", "programs", nil, "the last run of %s passed, but %s made after it", commandOf(s.last.Argv).Raw(), were(s.after, "commit"))
	}
}

func afterwards(commits int) string {
	if commits == 0 {
		return ""
	}
	return ", and " + were(commits, "commit") + " made after it"
}

// disputed returns the programs whose arguments changed, and those that ended before anybody could see what ran.
func (m *material) disputed() (changed, unread []Text) {
	for _, p := range m.programs {
		switch {
		case p.Disputed && p.Exe == "":
			unread = append(unread, Text(m.clock(p.Time)+" ")+p.command())
		case p.Disputed:
			changed = append(changed, Text(fmt.Sprintf("%s ran %s", m.clock(p.Time), p.Exe)))
		}
	}
	return changed, unread
}

// outside returns the changed files outside of the asked area.
func (v View) outside() (all []Text) {
	for _, c := range v.Commits {
		for _, f := range c.Files {
			if f.Outside {
				all = append(all, f.Path)
			}
		}
	}
	return words.Unique(all)
}

func texts(all []string) (converted []Text) {
	for _, t := range all {
		converted = append(converted, Text(t))
	}
	return converted
}
