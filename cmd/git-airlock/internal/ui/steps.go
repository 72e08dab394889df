package ui

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/git-airlock/git-airlock/gitops"
)

// Step is one of several that something long takes.
type Step struct {
	What       string
	Number, Of int
	Said       string // what it printed last
}

// Steps shows how far a build is: on a terminal a bar for each step and the last line that it printed, elsewhere
// a line for each step.
type Steps struct {
	to       io.Writer
	terminal bool
	last     Step
	shown    time.Time
}

// NewSteps shows steps on to.
func NewSteps(to io.Writer) *Steps {
	return &Steps{to: to, terminal: term.IsTerminal(int(os.Stderr.Fd()))}
}

// stepsEvery is how often the line of a step changes at most.
const stepsEvery = 100 * time.Millisecond

// Step shows a step: on a terminal as a line that changes, elsewhere when one begins.
func (s *Steps) Step(now Step) {
	begins := now.What != s.last.What || now.Number != s.last.Number
	if !s.terminal {
		if begins && now.Of > 0 {
			fmt.Fprintf(s.to, "airlock: step %d of %d: %s\n", now.Number, now.Of, gitops.Escape(short(now.What, 100)))
		}
		s.last = now
		return
	}
	if begins && s.last.What != "" {
		s.line(s.last, "done")
		fmt.Fprintln(s.to)
	}
	if begins || time.Since(s.shown) > stepsEvery {
		s.line(now, now.Said)
		s.shown = time.Now()
	}
	s.last = now
}

// line writes the line of a step over the one before.
func (s *Steps) line(now Step, said string) {
	const width = 20
	bar := ""
	if now.Of > 0 {
		filled := width * now.Number / now.Of
		bar = fmt.Sprintf("[%s%s] %d/%d ", strings.Repeat("#", filled), strings.Repeat(".", width-filled), now.Number, now.Of)
	}
	text := bar + gitops.Escape(short(now.What, 40))
	if said != "" {
		text += ": " + gitops.Escape(said)
	}
	fmt.Fprintf(s.to, "\r\x1b[K%s", short(text, Columns(int(os.Stderr.Fd()))-1))
}

// End ends the line of the last step.
func (s *Steps) End() {
	if s.terminal && s.last.What != "" {
		fmt.Fprintln(s.to)
	}
}

// short cuts a text to a number of characters.
func short(text string, most int) string {
	runes := []rune(text)
	if most < 4 || len(runes) <= most {
		return text
	}
	return string(runes[:most-3]) + "..."
}
