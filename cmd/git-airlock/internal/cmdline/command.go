package cmdline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
)

var (
	dryRunFlag = &cli.BoolFlag{Name: "dry-run", Usage: "print what would be done and change nothing"}
	helpFlag   = &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show help", DisableDefaultText: true}
	// JSONFlag is the option of commands that print one document.
	JSONFlag = &cli.BoolFlag{Name: "json", Usage: "print one JSON document"}
)

// Takes describes what may follow the options of a command. The zero value allows nothing.
type Takes struct {
	Least, Most int  // words, such as the name of a commit; options may follow them
	Inside      bool // a command for the prison, after "--"
	Paths       bool // paths of the workspace, after "--"
	Status      bool // the command returns the status of the command for the prison; its own failures have statuses from 125
}

// Command completes the description of a command: --dry-run, wrong usage, and a check of what follows the options.
func Command(c *cli.Command, takes Takes) *cli.Command {
	action := c.Action
	c.UseShortOptionHandling = true
	c.Flags = append(c.Flags, dryRunFlag)
	c.Action = func(ctx *cli.Context) error {
		err := takes.check(ctx)
		if err == nil {
			err = asUsageError(action(ctx))
		}
		if err = ui.Within(CommandName(ctx), err); takes.Status {
			err = asOwnFailure(err)
		}
		return err
	}
	return c
}

// SubAction runs a subcommand with its arguments.
type SubAction func(c *cli.Context, s *session.Session, words []string) error

// Subcommand describes a command below the command parent, in the repository. The synopsis begins with its name.
func Subcommand(parent, synopsis, usage string, takes Takes, act SubAction, flags ...cli.Flag) *cli.Command {
	name, _, _ := strings.Cut(synopsis, " ")
	return Command(&cli.Command{Name: name, Usage: usage, UsageText: "git airlock " + parent + " " + synopsis, Flags: flags,
		Action: InRepository(func(c *cli.Context, s *session.Session) error { return act(c, s, Words(c)) })}, takes)
}

// check reports what follows the options but is not allowed to. It stores the words for [Words].
func (t Takes) check(c *cli.Context) error {
	inside := Inside(c)
	var words []string
	switch {
	case t.Most > 0:
		var err error
		words, err = t.words(c)
		if err != nil {
			return err
		}
		c.Context = context.WithValue(c.Context, wordsKey{}, words)
	case c.Args().Present():
		return t.unexpected(c, c.Args().First())
	}
	switch {
	case t.Paths && inside != nil && (len(inside) == 0 || slices.Contains(inside, "")):
		return ui.Usagef("%s: no path after \"--\"", CommandName(c))
	case t.Paths:
	case inside != nil && !t.Inside:
		return ui.Usagef("%s takes no command", CommandName(c))
	case inside != nil && len(inside) == 0 && len(words) > 0: // an agent, without words of the user for it
	case inside != nil && len(inside) == 0:
		return ui.Usagef("%s: no command after \"--\"", CommandName(c))
	case inside != nil && inside[0] == "":
		return fmt.Errorf(`"": %w`, prison.ErrNotFound) // before a prison is started for it
	}
	return nil
}

// unexpected returns the error for a word that a command does not take.
func (t Takes) unexpected(c *cli.Context, word string) error {
	switch {
	case len(c.Command.Subcommands) > 0:
		return NoCommand(PageOf(c), word)
	case t.Inside:
		return ui.Usagef("%s: unexpected argument %q; a command for the prison goes after \"--\"", CommandName(c), word)
	case t.Paths:
		return ui.Usagef("%s: unexpected argument %q; paths go after \"--\"", CommandName(c), word)
	}
	return ui.Usagef("%s: unexpected argument %q", CommandName(c), word)
}

// words separates the words from options that follow them, as in "net allow HOST --for 1h", and sets these options.
func (t Takes) words(c *cli.Context) (words []string, err error) {
	rest := c.Args().Slice()
	for i := 0; i < len(rest); i++ {
		option, value, valued := strings.Cut(rest[i], "=")
		if !strings.HasPrefix(rest[i], "-") {
			words = append(words, rest[i])
			continue
		}
		o := optionOf(PageOf(c), option)
		if o != nil && !valued {
			value = "true"
			if o.Value != "" {
				if i++; i == len(rest) {
					return nil, ui.Usagef("%s: option %s needs a value", CommandName(c), option)
				}
				value = rest[i]
			}
		}
		err := set(c, strings.TrimLeft(option, "-"), value)
		switch {
		case err != nil && o == nil:
			return nil, t.unknown(c, option)
		case err != nil:
			return nil, ui.Usagef("%s: option %s: %s", CommandName(c), gitops.Text(option), gitops.Text(err.Error()))
		}
	}
	switch {
	case len(words) < t.Least:
		return nil, ui.Usagef("%s: %s is missing", CommandName(c), missing(c, len(words)))
	case len(words) > t.Most:
		return nil, t.unexpected(c, words[t.Most])
	}
	return words, nil
}

// unknown returns the error for an unknown option after a word, which may be the first word of a command for the prison.
func (t Takes) unknown(c *cli.Context, option string) error {
	e := noOption(PageOf(c), option)
	if t.Inside {
		e.Text += "; a command for the prison goes after \"--\""
	}
	return e
}

// set sets an option under all its names, since the library reads a value under the name with which it was given.
func set(c *cli.Context, name, value string) error {
	names := []string{name}
	for _, f := range c.Command.Flags {
		if slices.Contains(f.Names(), name) {
			names = f.Names()
		}
	}
	for _, n := range names {
		if err := c.Set(n, value); err != nil {
			return err
		}
	}
	return nil
}

// missing returns the name of the word number n, as the synopsis of a command has it. What is in brackets can be left out.
func missing(c *cli.Context, n int) string {
	p := PageOf(c)
	synopsis, _, _ := strings.Cut(c.Command.UsageText, "\n")
	open, value := 0, false // the brackets that are open, and whether the next word is the value of an option
	for _, word := range strings.Fields(strings.TrimPrefix(strings.TrimSpace(synopsis), p.Name)) {
		outside := open == 0 && !strings.HasPrefix(word, "[")
		open += strings.Count(word, "[") - strings.Count(word, "]")
		o := p.Option(word)
		if outside && o == nil && !value {
			if n--; n < 0 {
				return strings.TrimSuffix(word, "...")
			}
		}
		value = o != nil && o.Value != ""
	}
	return "an argument"
}

// wordsKey is the key of a command's words in the context of its action.
type wordsKey struct{}

// Words returns the words that follow the options of a command which takes some, see [Takes].
func Words(c *cli.Context) []string {
	words, _ := c.Context.Value(wordsKey{}).([]string)
	return words
}

// Inside returns the command for the prison, or the paths: nil without "--", and empty if nothing follows "--".
func Inside(c *cli.Context) []string {
	inside, _ := c.App.Metadata[insideKey].([]string)
	return inside
}

// asUsageError converts an error about an impossible request to a usage error, unless the error has its own hints.
func asUsageError(err error) error {
	if is[*session.RequestError](err) && !is[*environment.Advised](err) && !is[ownFailure](err) {
		return ui.Usagef("%s", err)
	}
	return err
}

// asOwnFailure marks failures of visit and run as their own, as opposed to the status of the command that they ran.
func asOwnFailure(err error) error {
	if isSaid(err) {
		return err
	}
	return ownFailure{err}
}
