package busy

import (
	"errors"
	"testing"
	"time"
)

// try makes a merge that needs some time, and returns the time that it was given, 0 if it was not tried.
func try(b *Budget, change, onto string, needs time.Duration) (given time.Duration, err error) {
	err = b.Do(Work{From: "base", To: change, Onto: onto}, func(t *Meter) error {
		given = t.Most
		t.used.Store(int64(min(needs, t.Most)))
		if needs <= t.Most {
			return nil
		}
		t.over.Store(true)
		return errors.New("ended")
	})
	return given, err
}

// TestBudget makes merges of several builds with one memory.
func TestBudget(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	const allows, cut = " s of processor time that airlock.limit.time allows", "it needs more than 3 s of processor time"
	const own, all = "it needs more than the 60" + allows, "the merges of one cycle need more than the 60" + allows
	type merge struct {
		change, onto string
		needs, given time.Duration
		fails        string
	}
	var m Slow
	for _, build := range []struct {
		title  string
		limit  time.Duration
		short  bool
		merges []merge
	}{
		{"one that takes for ever", 60 * s, false, []merge{
			{"slow", "tip", time.Hour, 60 * s, own}, {"slow", "tip", time.Hour, 0, own},
			{"slow", "place", 10 * ms, s, ""}, {"other", "tip", 10 * ms, s, ""}, {"long", "tip", 30 * s, s, all}, {"more", "tip", s, s, ""},
		}},
		{"one with the same change onto many others", 60 * s, false, []merge{
			{"slow", "1", time.Hour, s, own}, {"slow", "2", 10 * ms, s, ""}, {"slow", "3", time.Hour, s, own}, {"slow", "4", time.Hour, s, own},
			{"slow", "5", time.Hour, s, own}, {"slow", "6", time.Hour, s, own}, {"slow", "7", 10 * ms, 0, own}, {"other", "7", 10 * ms, 60 * s, ""},
		}},
		{"what the first build had no time for", 60 * s, false, []merge{
			{"slow", "tip", time.Hour, 0, own}, {"slow", "new tip", time.Hour, s, own}, {"long", "tip", 30 * s, 60 * s, ""}, {"other", "tip", 10 * ms, 60 * s, ""},
		}},
		{"many", 60 * s, false, []merge{
			{"1", "", 59 * s, 60 * s, ""}, {"2", "", 60 * s, 60 * s, ""}, {"3", "", s, s, ""}, {"4", "", ms, 0, all},
		}},
		{"another limit", 600 * s, false, []merge{{"slow", "tip", 100 * s, 600 * s, ""}}},
		{"a short budget", 60 * s, true, []merge{{"late", "tip", 10 * s, 3 * s, cut}, {"late", "tip", 10 * s, 0, cut}, {"other", "tip", 10 * ms, 50 * ms, ""}}},
		{"after a short budget", 60 * s, false, []merge{{"late", "tip", 10 * s, 60 * s, ""}}},
		{"a short limit", s, true, []merge{{"new", "tip", 10 * s, s, "it needs more than the 1" + allows}}},
	} {
		b, late := m.Budget(build.limit, build.short), false
		for _, c := range build.merges {
			given, err := try(&b, c.change, c.onto, c.needs)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if given != c.given || said != c.fails {
				t.Errorf("%s: %s onto %s: given %s, %q, want %s, %q", build.title, c.change, c.onto, given, said, c.given, c.fails)
			}
			late = late || err != nil
		}
		if m.CutShort() != (late && build.title == "a short budget") {
			t.Errorf("%s: cut short is %t", build.title, m.CutShort())
		}
	}
}
