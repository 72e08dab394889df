package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/manual"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
)

// commandName is a command after "git airlock".
func commandName(c *cli.Context) string {
	_, name, _ := strings.Cut(c.Command.HelpName, "git airlock ")
	return name
}

// noCommand is about a word where a command of a page's should be.
func noCommand(p manual.Page, word string) error {
	var names []string
	for _, c := range p.Commands {
		names = append(names, strings.TrimPrefix(c.Name, p.Name+" "))
	}
	e := &ui.UsageError{Text: fmt.Sprintf("%q is not a %s command", word, p.Name), Command: p.CommandName()}
	if meant := recipe.Nearest(word, names); meant != "" {
		e.Meant = []string{p.Name + " " + meant}
	}
	return e
}

// checkOptions looks at the options among some words after "git airlock", before they are read: flag packages speak of them
// in words of their own.
func checkOptions(p manual.Page, words []string) error {
	for i := 0; i < len(words); i++ {
		word, value, valued := strings.Cut(words[i], "=")
		if !strings.HasPrefix(word, "-") || word == "-" {
			at := slices.IndexFunc(p.Commands, func(c manual.Page) bool { return c.Name == p.Name+" "+word })
			if at < 0 || word == "log" { // which is told of elsewhere; the options of git log are git's
				return nil
			}
			p = p.Commands[at]
			continue
		}
		if word == "-h" || word == "--help" {
			return checkHelp(p, words[i+1:])
		}
		o := p.Option(word)
		if o == nil && len(word) > 2 {
			o = p.Option("--" + strings.TrimLeft(word, "-"))
		}
		if o == nil {
			return noOption(p, word)
		}
		if _, err := strconv.ParseBool(value); o.Value == "" && valued && err != nil {
			return ui.Within(p.CommandName(), ui.Usagef("%s: option %s: %q is not true or false", p.CommandName(), word, gitops.Escape(value)))
		}
		if o.Value == "" || valued {
			continue
		}
		if i++; i == len(words) {
			return ui.Within(p.CommandName(), ui.Usagef("%s: option %s wants a value", p.CommandName(), word))
		}
	}
	return nil
}

// checkHelp looks at the words after -h, which name a command to explain where there are any.
func checkHelp(p manual.Page, words []string) error {
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		return nil
	}
	if len(p.Commands) == 0 {
		return ui.Within(p.CommandName(), ui.Usagef("%s: unexpected argument %q", p.CommandName(), words[0]))
	}
	if !slices.ContainsFunc(p.Commands, func(c manual.Page) bool { return c.Name == p.Name+" "+words[0] }) {
		return noCommand(p, words[0])
	}
	return nil
}

// noOption is about an option that a command does not have.
func noOption(p manual.Page, word string) error {
	names := []string{"--help"}
	for _, o := range p.Options {
		names = append(names, o.Names...)
	}
	text := "unknown option " + gitops.Escape(word)
	if command := p.CommandName(); command != "" {
		text = command + ": " + text
	}
	e := &ui.UsageError{Text: text, Command: p.CommandName()}
	if meant := recipe.Nearest(word, names); meant != "" && len(word) > 2 {
		e.Meant = []string{p.Name + " " + meant}
	}
	return e
}

// returnsChild tells the commands that return the status of another command, and 125 for what they cannot do themselves.
func returnsChild(words []string) bool {
	at := slices.IndexFunc(words, func(w string) bool { return !strings.HasPrefix(w, "-") })
	return at >= 0 && (words[at] == "visit" || words[at] == "run")
}

// ofOption is an error about a setting as one about the option that it was given by.
func ofOption(c *cli.Context, err error) error {
	var setting *promote.SettingError
	if errors.As(err, &setting) {
		if name := strings.TrimPrefix(setting.Key, "airlock."); c.IsSet(name) {
			return ui.Usagef("--%s: %q is not %s", name, gitops.Escape(setting.Value), setting.Want)
		}
	}
	return err
}

// engineOption is the engine that was asked for, empty for none.
func engineOption(c *cli.Context) (string, error) {
	engine := c.String(engineFlag.Name)
	if engine != "" && !promote.IsEngine(engine) {
		return "", ui.Usagef("--%s: %q is not tree or patch", engineFlag.Name, gitops.Escape(engine))
	}
	return engine, nil
}
