package lifecycle

import (
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/request"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/words"
)

// retype returns the error of a start or run that did not start the prison. It keeps no options. Where a hint of the error is a start,
// retype therefore makes it the typed command, with the options of the hint.
func retype(c *cli.Context, err error) error {
	if _, started := errors.AsType[*environment.CommandError](err); started {
		return err
	}
	next := session.Next(err)
	again := slices.Clone(next)
	for i, hint := range next {
		again[i] = typedAgain(c, hint)
	}
	if slices.Equal(again, next) {
		return err
	}
	return &notStarted{err, again}
}

// notStarted is an error with the typed command among its hints.
type notStarted struct {
	error
	next []string
}

func (e *notStarted) Unwrap() error  { return e.error }
func (e *notStarted) Next() []string { return e.next }

// typedAgain returns a hint as the command that was typed, with the options of the hint.
func typedAgain(c *cli.Context, hint string) string {
	command, comment := words.CutComment(hint)
	before, options, found := strings.Cut(command+" ", "git airlock start ")
	if options = strings.TrimSpace(options); !found || strings.Contains(before, "git airlock") || options != "" && !strings.HasPrefix(options, "--") {
		return hint
	}
	again := append([]string{before + "git airlock " + c.Command.Name}, pasteable(cmdline.Words(c))...)
	if options != "" {
		again = append(again, options)
	}
	dropped := append(replaced(options, comment), "dry-run")
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; c.IsSet(name) && !slices.Contains(dropped, name) {
			again = append(again, request.Typed(c, f)...)
		}
	}
	if inside := cmdline.Inside(c); inside != nil {
		again = append(append(again, "--"), pasteable(inside)...)
	}
	if comment != "" {
		comment = "  # " + comment
	}
	return strings.Join(again, " ") + comment
}

func pasteable(all []string) (quoted []string) {
	for _, word := range all {
		quoted = append(quoted, gitops.Pasteable(word))
	}
	return quoted
}

// replaced returns the typed options that a hint is without: those in whose place it has its own, those that its own exclude, and those
// that its comment names.
func replaced(options, comment string) (names []string) {
	for option := range strings.SplitSeq(" "+options, " --") {
		name, value, _ := strings.Cut(strings.Replace(option, " ", "=", 1), "=") // a value follows either of both
		names = append(names, request.Excluded(name, value)...)
		if name != "tool" { // tools add up
			names = append(names, name)
		}
	}
	if _, without, found := strings.Cut(comment, "without --"); found {
		for name := range strings.SplitSeq(without, ", --") {
			name, _, _ = strings.Cut(name, ":")
			names = append(names, name)
		}
	}
	return names
}
