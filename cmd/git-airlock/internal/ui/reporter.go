package ui

import (
	"context"
	"fmt"
	"io"

	"github.com/git-airlock/git-airlock/gitops"
)

// Reporter reports to people what happens during a long call: messages on a writer, progress on the terminal.
type Reporter struct{ To io.Writer }

// Say prints one message.
func (r Reporter) Say(format string, args ...any) { Say(r.To, format, args...) }

// Hint prints what to type next.
func (r Reporter) Hint(commands ...string) { Hint(r.To, commands...) }

// Quote prints a line of another program's, set in and escaped.
func (r Reporter) Quote(line string) { fmt.Fprintf(r.To, "  %s\n", gitops.Escape(line)) }

// Quoted returns a writer that quotes what is written line by line. flush ends the last line.
func (r Reporter) Quoted() (out io.Writer, flush func()) {
	text := &agentText{to: r.To}
	return text, text.flush
}

// Begin begins a step that can take long.
func (r Reporter) Begin(what string) (step func(what string, done, all int), end func()) {
	line := newProgress(what)
	return line.step, line.close
}

// Steps begins something that another program does in steps.
func (r Reporter) Steps() (step func(what string, number, of int, said string), end func()) {
	s := newSteps(r.To)
	return func(what string, number, of int, said string) { s.show(quotedStep{what, number, of, said}) }, s.end
}

// CanAsk reports whether somebody is there to answer.
func (r Reporter) CanAsk() bool { return CanAsk() }

// Ask asks a question that is answered by yes or no.
func (r Reporter) Ask(ctx context.Context, question string) (bool, error) {
	return ask(ctx, r.To, question)
}
