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

// commandName returns the name of a command after "git airlock".
func commandName(c *cli.Context) string {
	_, name, _ := strings.Cut(c.Command.HelpName, "git airlock ")
	return name
}

// noCommand returns the error for a word that is not one of a page's commands.
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

// wordsKey is the metadata key of the words after "git airlock", which errors quote.
const wordsKey = "words"

func wordsOf(c *cli.Context) []string {
	words, _ := c.App.Metadata[wordsKey].([]string)
	return words
}

// onUsageError rewrites an error of the flag package in this program's words.
func onUsageError(c *cli.Context, err error, _ bool) error {
	if explained := wrongOption(appPage(c.App), wordsOf(c)); explained != nil {
		return ofCommand(c, explained)
	}
	return ofCommand(c, ui.Within(commandName(c), ui.Usagef("%s", err)))
}

// ofCommand marks wrong usage of visit and run as their own failure, since they return the status of another command.
func ofCommand(c *cli.Context, err error) error {
	words := wordsOf(c)
	at := slices.IndexFunc(words, func(w string) bool { return !strings.HasPrefix(w, "-") })
	if at >= 0 && (words[at] == "visit" || words[at] == "run") {
		return ownFailure{err}
	}
	return err
}

// showHelp handles -h before a command acts. It shows the page of the command, or of the named subcommand.
func showHelp(c *cli.Context) error {
	if !c.Bool(helpFlag.Name) {
		return nil
	}
	p := pageOf(c)
	for _, word := range c.Args().Slice() {
		if len(p.Commands) == 0 {
			return ofCommand(c, ui.Within(p.CommandName(), ui.Usagef("%s: unexpected argument %q", p.CommandName(), word)))
		}
		at := slices.IndexFunc(p.Commands, func(sub manual.Page) bool { return sub.Name == p.Name+" "+word })
		if at < 0 {
			return noCommand(p, word)
		}
		p = p.Commands[at]
	}
	p.Help(c.App.Writer, manual.WidthOf(c.App.Writer))
	return told{errHelped}
}

// wrongOption finds the invalid option among the words after "git airlock", and returns an error that explains it.
func wrongOption(p manual.Page, words []string) error {
	for i := 0; i < len(words); i++ {
		word, value, valued := strings.Cut(words[i], "=")
		if !strings.HasPrefix(word, "-") || word == "-" {
			at := slices.IndexFunc(p.Commands, func(c manual.Page) bool { return c.Name == p.Name+" "+word })
			if at < 0 {
				return nil
			}
			p = p.Commands[at]
			continue
		}
		o := p.Option(word)
		if o == nil && len(word) > 2 {
			o = p.Option("--" + strings.TrimLeft(word, "-"))
		}
		if o == nil {
			return noOption(p, word)
		}
		if _, err := strconv.ParseBool(value); o.Value == "" && valued && err != nil {
			return ui.Within(p.CommandName(), ui.Usagef("%s: option %s: %q is not true or false", p.CommandName(), word, gitops.Text(value)))
		}
		if o.Value == "" || valued {
			continue
		}
		if i++; i == len(words) {
			return ui.Within(p.CommandName(), ui.Usagef("%s: option %s needs a value", p.CommandName(), word))
		}
	}
	return nil
}

// noOption returns the error for an unknown option.
func noOption(p manual.Page, word string) error {
	names := []string{"--help"}
	for _, o := range p.Options {
		names = append(names, o.Names...)
	}
	text := "unknown option " + gitops.Text(word).String()
	if command := p.CommandName(); command != "" {
		text = command + ": " + text
	}
	e := &ui.UsageError{Text: text, Command: p.CommandName()}
	if meant := recipe.Nearest(word, names); meant != "" && len(word) > 2 {
		e.Meant = []string{p.Name + " " + meant}
	}
	return e
}

// ofOption converts an error about a setting to an error about the option, if the option was given.
func ofOption(c *cli.Context, err error) error {
	var setting *promote.SettingError
	if errors.As(err, &setting) {
		if name := strings.TrimPrefix(setting.Key, "airlock."); c.IsSet(name) {
			return ui.Usagef("--%s: %q is not %s", name, gitops.Text(setting.Value), setting.Want)
		}
	}
	return err
}

// engineOption returns the value of --engine, empty for none.
func engineOption(c *cli.Context) (string, error) {
	engine := c.String(engineFlag.Name)
	if engine != "" && !promote.IsEngine(engine) {
		return "", ui.Usagef("--%s: %q is not tree or patch", engineFlag.Name, gitops.Text(engine))
	}
	return engine, nil
}
