package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// axis returns the events of the run as marks between its beginning and its end.
func (m *material) axis(commits []Commit) (a Axis) {
	a.Ticks = m.ticks()
	add := func(name string, all int, marks []Mark) {
		if all > 0 {
			a.Lanes = append(a.Lanes, Lane{name, len(marks), all - len(marks), marks})
		}
	}
	programs, tests := m.programMarks()
	add("Programs", len(m.programs)-len(tests), programs)
	add("Tests", len(tests), tests)
	add("Commits", len(commits), m.commitMarks(commits))
	network := m.networkMarks()
	add("Network", len(network), network)
	events := m.eventMarks()
	add("Events", len(events), events)
	for _, p := range []Plot{m.processorPlot(), m.memoryPlot()} {
		if len(p.Points) >= fewest {
			a.Plots = append(a.Plots, p)
		}
	}
	return a
}

// length returns how long the run was, at least a millisecond.
func (m *material) length() time.Duration { return max(time.Millisecond, m.Ended.Sub(m.Started)) }

// at returns a moment in percent of the run.
func (m *material) at(t time.Time) float64 {
	return rounded(100 * float64(t.Sub(m.Started)) / float64(m.length()))
}

// rounded returns a percentage with two decimals, within the axis.
func rounded(percent float64) float64 {
	return float64(int(100*min(100, max(0, percent)))) / 100
}

// steps are the distances between ticks, for seconds as for hours.
var steps = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 240 * time.Hour}

// ticks returns at most seven labelled moments.
func (m *material) ticks() (ticks []Tick) {
	step := steps[len(steps)-1]
	for _, s := range steps {
		if m.length() <= 6*s {
			step = s
			break
		}
	}
	form := "15:04"
	if step < time.Minute {
		form = time.TimeOnly
	}
	for t := m.Started.UTC().Truncate(step); !t.After(m.Ended) && len(ticks) < 8; t = t.Add(step) {
		if !t.Before(m.Started.UTC()) {
			ticks = append(ticks, Tick{m.at(t), t.Format(form)})
		}
	}
	if len(ticks) == 0 {
		ticks = []Tick{{0, m.clock(m.Started)}}
	}
	return ticks
}

// whole is a part of the run's time, in percent. A program that ran for longer is the command itself. It gets no mark, which would cover all
// others.
const whole = 95

// programMarks returns the marks of programs, and those of tests.
func (m *material) programMarks() (marks, tests []Mark) {
	anyTop := slices.ContainsFunc(m.programs, func(p program) bool { return p.Top })
	for i := range m.programs {
		p := &m.programs[i]
		text, level := p.result()
		if anyTop && !p.Top && !p.test && level != Bad {
			continue
		}
		mark := Mark{At: m.at(p.Time), Level: level, Text: Text(fmt.Sprintf("%s %s: %s", m.clock(p.Time), p.command().Raw(), text.Raw()))}
		if end := m.at(p.Time.Add(p.took())); p.Deny == nil && end-mark.At >= 0.3 {
			mark.Length = rounded(end - mark.At)
		}
		switch {
		case p.test:
			tests = append(tests, mark)
		case mark.Length < whole:
			marks = append(marks, mark)
		}
	}
	return marks, tests
}

// crowded is the distance in percent below which a commit has no number on the axis.
const crowded = 2.5

func (m *material) commitMarks(commits []Commit) (marks []Mark) {
	last := -crowded
	for _, c := range commits {
		if c.Time.IsZero() {
			continue
		}
		mark := Mark{At: m.at(c.Time), Level: c.Level, Text: Text(fmt.Sprintf("%s %d. %s: %s", c.when(m.length()), c.Number, c.Subject.Raw(), c.State.Raw()))}
		if mark.At-last >= crowded {
			mark.Number, last = c.Number, mark.At
		}
		marks = append(marks, mark)
	}
	return marks
}

func (m *material) networkMarks() (marks []Mark) {
	for _, r := range m.egress {
		level := Good
		switch {
		case r.For(m.Unneeded):
			level = Plain
		case r.Kind == control.KindRefusal:
			level = Bad
		case r.Kind != control.KindFlow || r.Verdict == control.VerdictBegun:
			continue
		case r.Verdict == control.VerdictFailed:
			level = Look
		}
		began := r.Time.Add(-time.Duration(max(0, r.Millis)) * time.Millisecond)
		marks = append(marks, Mark{At: m.at(began), Level: level, Text: Text(m.clock(began) + " " + destination(r))})
	}
	return marks
}

func (m *material) eventMarks() (marks []Mark) {
	for _, e := range m.viewEvents() {
		marks = append(marks, Mark{At: m.at(e.Time), Level: e.Level, Text: Text(m.clock(e.Time) + " " + e.Text.Raw())})
	}
	return marks
}

const (
	points      = 240 // the maximum number of points of a plot
	fewest      = 4   // the minimum: fewer points would only show when measurements were made
	leastCores  = 1   // the smallest value at the top of a plot, so that a small value does not look large
	leastMemory = 64 << 20
)

// plot returns samples as the points of a plot. Its top is the highest value, or least if that is higher. If a point stands for several samples,
// the highest one counts.
func (m *material) plot(least float64, value func(i int) float64) (all [][2]float64, top float64) {
	buckets := map[int]float64{}
	for i, s := range m.samples {
		if v := value(i); v >= 0 {
			b := int(float64(points) * min(1, max(0, float64(s.Millis)/float64(m.length().Milliseconds()))))
			buckets[b] = max(buckets[b], v)
			top = max(top, v)
		}
	}
	for b := range points + 1 {
		if v, ok := buckets[b]; ok && top > 0 {
			all = append(all, [2]float64{rounded(100 * float64(b) / points), rounded(100 * v / max(top, least))})
		}
	}
	return all, top
}

// cores returns how many cores were busy before a sample, or -1.
func (m *material) cores(i int) float64 {
	if i == 0 || m.samples[i].CPU < 0 || m.samples[i-1].CPU < 0 || m.samples[i].Millis <= m.samples[i-1].Millis {
		return -1
	}
	return max(0, float64(m.samples[i].CPU-m.samples[i-1].CPU)/float64(m.samples[i].Millis-m.samples[i-1].Millis))
}

func (m *material) processorPlot() Plot {
	all, top := m.plot(leastCores, m.cores)
	label := fmt.Sprintf("%.1f", max(0.1, top))
	if m.Isolation.CPUs > 0 {
		label += fmt.Sprintf(" of %g", m.Isolation.CPUs)
	}
	return Plot{"Processor", label + " cores", all}
}

func (m *material) memoryPlot() Plot {
	all, top := m.plot(leastMemory, func(i int) float64 { return float64(m.samples[i].Memory) })
	label := memory(int64(top))
	if m.Isolation.Memory > 0 {
		label += " of " + memory(m.Isolation.Memory)
	}
	return Plot{"Memory", label, all}
}
