package report

import (
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/promote/record"
)

// stall is a time in which nothing happened.
type stall struct {
	from time.Time
	took time.Duration
}

const (
	shortestStall = 5 * time.Minute
	idleCores     = 0.03 // an agent that only waits uses no more
)

// stalls returns the times in which no program began or ended, no connection began or ended, and the processor was idle.
func (m *material) stalls() (all []stall) {
	if !m.has[record.ExecName] && !m.has[record.EgressName] {
		return nil
	}
	times := []time.Time{m.Started, m.Ended}
	add := func(t time.Time, before time.Duration) {
		for _, t := range []time.Time{t, t.Add(-before)} {
			if t.After(m.Started) && t.Before(m.Ended) {
				times = append(times, t)
			}
		}
	}
	for _, p := range m.programs {
		add(p.Time, -p.took())
	}
	for _, r := range m.egress {
		add(r.Time, time.Duration(max(0, r.Millis))*time.Millisecond)
	}
	slices.SortFunc(times, time.Time.Compare)
	for i := 1; i < len(times); i++ {
		if s := m.idle(stall{times[i-1], times[i].Sub(times[i-1])}); s.took >= shortestStall {
			all = append(all, s)
		}
	}
	return all
}

// idle returns the longest part of a time in which the processor was idle: all of it, if the processor was not measured.
func (m *material) idle(within stall) (longest stall) {
	if within.took < shortestStall || len(m.samples) < 2 {
		return within
	}
	end := within.from.Add(within.took)
	part := stall{from: within.from}
	for i := 1; i < len(m.samples); i++ {
		from, to := m.sampled(i-1), m.sampled(i)
		if !to.After(within.from) || from.After(end) {
			continue
		}
		if m.cores(i) > idleCores {
			part.from = to
			continue
		}
		if to.After(end) {
			to = end
		}
		if part.took = to.Sub(part.from); part.took > longest.took {
			longest = part
		}
	}
	return longest
}

func (m *material) sampled(i int) time.Time {
	return m.Started.Add(time.Duration(m.samples[i].Millis) * time.Millisecond)
}
