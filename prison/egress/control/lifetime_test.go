package control

import (
	"testing"
	"time"
)

// TestLifetimes moves the time of day while the monotonic clock goes on. The permission is for an hour.
func TestLifetimes(t *testing.T) {
	made := time.Now()
	until := made.Round(0).Add(time.Hour)
	for name, steps := range map[string][]struct {
		passed, ahead time.Duration // since the rule was made, by the monotonic clock, and how far the time of day is ahead of it
		want          bool
	}{
		"no change":         {{0, 0, true}, {59 * time.Minute, 0, true}, {time.Hour, 0, false}},
		"set back":          {{0, 0, true}, {31 * time.Minute, -20 * time.Minute, true}, {61 * time.Minute, -20 * time.Minute, false}},
		"set back, stopped": {{0, 0, true}, {time.Minute, -365 * 24 * time.Hour, false}, {2 * time.Minute, 0, false}},
		"set forward":       {{0, 0, true}, {time.Minute, 2 * time.Hour, false}, {2 * time.Minute, 0, false}},
		"new process":       {{40 * time.Minute, -20 * time.Minute, true}, {79 * time.Minute, -20 * time.Minute, true}, {80 * time.Minute, -30 * time.Minute, false}},
		"new process later": {{30 * time.Minute, -31 * time.Minute, false}},
	} {
		var l Lifetimes
		for _, step := range steps {
			now, day := made.Add(step.passed), made.Round(0).Add(step.passed+step.ahead)
			rules := Rules{Allow: []Rule{{Text: "a.test", Since: made.Round(0), Until: until}, {Text: "b.test"}}, Deny: []Rule{{Text: "c.test", Until: until}}}
			got := l.InForce(rules, now, day)
			if in := len(got.Allow) == 2; in != step.want || len(got.Deny) != 1 {
				t.Errorf("%s, %+v: %+v", name, step, got)
			}
			if in := !rules.Allow[0].Ended(day); step.want && !in {
				t.Errorf("%s, %+v: it has ended by the time of day", name, step)
			}
		}
	}
}
