package runs

import (
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/promote/record"
)

// TestOrderOfEvents sets the clock forward and back while three logs are written. Each log stays in the order of happening, also from a moment on.
func TestOrderOfEvents(t *testing.T) {
	log := func(text string) (all []record.Event) { // a letter for each event, and its time
		for _, word := range strings.Fields(text) {
			all = append(all, record.Event{Text: word[:1], Time: time.Unix(int64(word[1]-'0'), 0)})
		}
		return all
	}
	for _, c := range []struct {
		a, b, c string
		since   int64
		want    string
	}{
		{"", "", "", 0, ""},
		{"a1 b3", "c2", "d4", 0, "acbd"},
		{"a1 b3", "c2", "d4", 2, "cbd"},
		{"a5 b9 c2 d6", "", "", 0, "abcd"},
		{"a5 b9 c2 d6", "", "", 6, "bcd"},
		{"a5 b2 c3", "", "", 9, ""},
		{"a1 b5", "c2 d2 e2", "", 0, "acdeb"},
		{"a1 b1", "c1", "", 0, "abc"},
	} {
		got := ""
		for _, e := range startingAt(merged(merged(log(c.a), log(c.b)), log(c.c)), time.Unix(c.since, 0)) {
			got += e.Text
		}
		if got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
