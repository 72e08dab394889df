package report

import (
	"slices"
	"time"
)

// made is the time at which a commit was made.
type made struct {
	at    time.Time // zero if it is not known
	exact bool      // at is the end of the program that made the commit, instead of the date in the commit
}

// timeCommits finds the times at which the commits were made. A commit itself has only a date in whole seconds, which the agent chose. So its
// time is the end of the program that made it. If there is no such program, and the date is within the run, the time is the end of that second,
// so that the events that led to the commit come before it.
func (m *material) timeCommits() {
	used := map[int]bool{}
	for i := range m.commits {
		c := &m.commits[i]
		if at, ok := m.committed(*c, used); ok {
			c.made = made{at, true}
		} else if at := c.authored; !at.Before(m.Started.Add(-time.Second)) && !at.After(m.Ended) {
			c.at = at.Add(time.Second - time.Millisecond)
			if c.at.After(m.Ended) {
				c.at = m.Ended
			}
		}
	}
}

// committed returns the end of the first program that can have made a commit: it ran in the second of the commit's date, or its
// command line has the subject of a commit whose date is not in the record. Each program counts once.
func (m *material) committed(c commit, used map[int]bool) (time.Time, bool) {
	for i, p := range m.programs {
		if used[i] || !p.commit || p.Exit == nil || *p.Exit != 0 || p.Millis == nil {
			continue
		}
		end := p.Time.Add(p.took())
		dated := !c.authored.IsZero() && !c.authored.Before(p.Time.Truncate(time.Second)) && !c.authored.After(end)
		if dated || c.authored.IsZero() && slices.Contains(p.Argv, c.Subject.Raw()) {
			used[i] = true
			return end, true
		}
	}
	return time.Time{}, false
}
