package cmdline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/manual"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/recipe"
)

// CommandName returns the name of a command after "git airlock".
func CommandName(c *cli.Context) string {
	_, name, _ := strings.Cut(c.Command.HelpName, "git airlock ")
	return name
}

// NoCommand returns the error for a word that is not one of a page's commands.
func NoCommand(p manual.Page, word string) error {
	var names []string
	for _, c := range p.Commands {
		names = append(names, strings.TrimPrefix(c.Name, p.Name+" "))
	}
	e := &ui.UsageError{Text: fmt.Sprintf("%q is not a %s command", word, p.Name), Command: p.CommandName()}
	// The user most likely meant the command that begins with the word. Users paste hints, so that a hint never ends what runs.
	meant := recipe.Nearest(word, names)
	if begins := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, word) }); len(begins) == 1 {
		meant = begins[0]
	}
	if meant != "" && meant != "stop" && meant != "clear" {
		e.Meant = []string{p.Name + " " + meant}
	}
	return e
}

// typedWords returns the words after "git airlock".
func typedWords(c *cli.Context) []string {
	words, _ := c.App.Metadata[typedKey].([]string)
	return words
}

// onUsageError rewrites an error of the flag package in this program's words.
func onUsageError(c *cli.Context, err error, _ bool) error {
	if explained := wrongOption(ProgramPage(c.App), typedWords(c)); explained != nil {
		return ofCommand(c, explained)
	}
	return ofCommand(c, ui.Within(CommandName(c), ui.Usagef("%s", err)))
}

// ofCommand marks wrong usage of visit and run as their own failure, since they return the status of another command.
func ofCommand(c *cli.Context, err error) error {
	words := typedWords(c)
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
	p := PageOf(c)
	for _, word := range c.Args().Slice() {
		if len(p.Commands) == 0 {
			return ofCommand(c, ui.Within(p.CommandName(), ui.Usagef("%s: unexpected argument %q", p.CommandName(), word)))
		}
		at := slices.IndexFunc(p.Commands, func(sub manual.Page) bool { return sub.Name == p.Name+" "+word })
		if at < 0 {
			return NoCommand(p, word)
		}
		p = p.Commands[at]
	}
	p.Help(c.App.Writer, manual.WidthOf(c.App.Writer))
	return Shown(errHelped)
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
		o := optionOf(p, word)
		if o == nil {
			return noOption(p, word)
		}
		if _, err := strconv.ParseBool(value); o.Value == "" && valued && err != nil {
			return ui.Within(p.CommandName(), ui.Usagef("%s: %q is not true or false", strings.TrimPrefix(p.CommandName()+": option "+word, ": "), gitops.Text(value)))
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

// optionOf returns the option that a word names, nil for none. A long name may have one hyphen, as in the flag package.
func optionOf(p manual.Page, word string) *manual.Option {
	o := p.Option(word)
	if o == nil && len(word) > 2 {
		o = p.Option("--" + strings.TrimLeft(word, "-"))
	}
	return o
}

func noOption(p manual.Page, word string) *ui.UsageError {
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
