package ui

import (
	"fmt"
	"io"
	"os"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/words"
)

// Reporter shows the user the events of a long call: messages on a writer, and progress on the terminal.
type Reporter struct{ To io.Writer }

// Say prints one message.
func (r Reporter) Say(format string, args ...any) { Say(r.To, format, args...) }

// Hint prints the next commands.
func (r Reporter) Hint(commands ...string) { Hint(r.To, commands...) }

// Quote prints a line of another program's output, indented and escaped.
func (r Reporter) Quote(line string) { fmt.Fprintf(r.To, "  %s\n", gitops.Text(line)) }

// Quoted returns a writer that quotes its input line by line. flush ends the last line.
func (r Reporter) Quoted() (out io.Writer, flush func()) {
	text := &words.LineWriter{Each: r.Quote}
	return text, text.Flush
}

// Begin starts the progress line of a step that can take long.
func (r Reporter) Begin(what string) (step func(what string, done, all int), end func()) {
	line := newProgress(what)
	return line.step, line.close
}

// Steps starts the progress line of another program that works in several steps.
func (r Reporter) Steps() (step func(what string, number, of int, said string), end func()) {
	s := &steps{to: r.To, terminal: IsTerminal(os.Stderr)}
	return func(what string, number, of int, said string) { s.show(quotedStep{what, number, of, said}) }, s.end
}

// CanAsk reports whether a user can answer questions.
func (r Reporter) CanAsk() bool { return CanAsk() }
