package ui

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/words"
)

// quotedStep is one step of another program.
type quotedStep struct {
	what       string
	number, of int
	said       string // its latest output
}

// steps shows the progress of a build. On a terminal it shows a bar and the latest output of each step, elsewhere a line for
// each step.
type steps struct {
	to       io.Writer
	terminal bool
	last     quotedStep
	shown    time.Time
}

// stepsEvery is the minimum interval between updates of a step's line.
const stepsEvery = 100 * time.Millisecond

func (s *steps) show(now quotedStep) {
	begins := now.what != s.last.what || now.number != s.last.number
	if !s.terminal {
		if begins && now.of > 0 {
			fmt.Fprintf(s.to, "airlock: step %d of %d: %s\n", now.number, now.of, gitops.Text(words.Shorten(now.what, 100)))
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

// line replaces the current line with the line of a step.
func (s *steps) line(now quotedStep, said string) {
	const width = 20
	bar := ""
	if now.of > 0 {
		filled := max(0, min(width*now.number/now.of, width))
		bar = fmt.Sprintf("[%s%s] %d/%d ", strings.Repeat("#", filled), strings.Repeat(".", width-filled), now.number, now.of)
	}
	text := bar + gitops.Text(words.Shorten(now.what, 40)).String()
	if said != "" {
		text += ": " + gitops.Text(said).String()
	}
	fmt.Fprintf(s.to, "\r\x1b[K%s", words.Shorten(text, Columns(os.Stderr)-1))
}

// end ends the line of the last step.
func (s *steps) end() {
	if s.terminal && s.last.what != "" {
		fmt.Fprintln(s.to)
	}
}
