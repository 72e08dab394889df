package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/words"
)

// took formats a duration in two units at most.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60), " 0 s")
	}
	return strings.TrimSuffix(fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60), " 0 min")
}

// memory formats a size of memory, which is limited in powers of two.
func memory(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return strings.Replace(fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)), ".0 ", " ", 1)
}

// list joins words: "a", "a and b", "a, b and c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// are returns how many things there are, with the verb.
func are(n int, thing string) string { return words.Count(n, thing) + verb(n, " is", " are") }

// were returns how many things there were, with the verb.
func were(n int, thing string) string {
	if n == 0 {
		return "no " + thing + " was"
	}
	return words.Count(n, thing) + verb(n, " was", " were")
}

func times(n int) string { return verb(n, "once", fmt.Sprintf("%d times", n)) }

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
