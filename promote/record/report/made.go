package report

import (
	"slices"
	"time"
)

// made is when a commit was made.
type made struct {
	at    time.Time // zero if it is not known
	exact bool      // at is the end of the program that made the commit, instead of the date in the commit
}

// timeCommits finds out when the commits were made. A commit has only a date in whole seconds, which the agent chose, so the
// program that made it counts. Without such a program, a commit with a date within the run is at the end of that second: what
// happened in the same second and led to it is then before it.
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
