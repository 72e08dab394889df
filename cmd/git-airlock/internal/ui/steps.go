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

// quotedStep is one of several that something long takes.
type quotedStep struct {
	what       string
	number, of int
	said       string // what it printed last
}

// steps shows how far a build is: on a terminal a bar for each step and the last line that it printed, elsewhere
// a line for each step.
type steps struct {
	to       io.Writer
	terminal bool
	last     quotedStep
	shown    time.Time
}

// newSteps shows steps on to.
func newSteps(to io.Writer) *steps {
	return &steps{to: to, terminal: term.IsTerminal(int(os.Stderr.Fd()))}
}

// stepsEvery is how often the line of a step changes at most.
const stepsEvery = 100 * time.Millisecond

func (s *steps) show(now quotedStep) {
	begins := now.what != s.last.what || now.number != s.last.number
	if !s.terminal {
		if begins && now.of > 0 {
			fmt.Fprintf(s.to, "airlock: step %d of %d: %s\n", now.number, now.of, gitops.Escape(short(now.what, 100)))
		}
		s.last = now
		return
	}
	if begins && s.last.what != "" {
		s.line(s.last, "done")
		fmt.Fprintln(s.to)
	}
	if begins || Now().Sub(s.shown) > stepsEvery {
		s.line(now, now.said)
		s.shown = Now()
	}
	s.last = now
}

// line writes the line of a step over the one before.
func (s *steps) line(now quotedStep, said string) {
	const width = 20
	bar := ""
	if now.of > 0 {
		filled := width * now.number / now.of
		bar = fmt.Sprintf("[%s%s] %d/%d ", strings.Repeat("#", filled), strings.Repeat(".", width-filled), now.number, now.of)
	}
	text := bar + gitops.Escape(short(now.what, 40))
	if said != "" {
		text += ": " + gitops.Escape(said)
	}
	fmt.Fprintf(s.to, "\r\x1b[K%s", short(text, Columns(int(os.Stderr.Fd()))-1))
}

// end ends the line of the last step.
func (s *steps) end() {
	if s.terminal && s.last.what != "" {
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
