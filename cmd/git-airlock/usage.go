package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
)

// usageError is a command line that cannot be understood.
type usageError struct {
	text    string
	command string   // after "git airlock", whose help says more; empty for the program's own
	meant   []string // what somebody may have meant, to be typed
}

func (e *usageError) Error() string { return e.text }

func (e *usageError) hints() []string {
	if len(e.meant) > 0 {
		return e.meant
	}
	return []string{strings.Join(strings.Fields("git airlock "+e.command+" -h"), " ")}
}

func usagef(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// within says of which command an error about the usage is.
func within(command string, err error) error {
	var usage *usageError
	if errors.As(err, &usage) && usage.command == "" {
		usage.command = command
	}
	return err
}

// commandName is a command after "git airlock".
func commandName(c *cli.Context) string {
	_, name, _ := strings.Cut(c.Command.HelpName, "git airlock ")
	return name
}

// noCommand is about a word where a command of a page's should be.
func noCommand(p page, word string) error {
	var names []string
	for _, c := range p.commands {
		names = append(names, strings.TrimPrefix(c.name, p.name+" "))
	}
	e := &usageError{text: fmt.Sprintf("%q is not a %s command", word, p.name), command: p.command()}
	if meant := recipe.Nearest(word, names); meant != "" {
		e.meant = []string{p.name + " " + meant}
	}
	return e
}

// checkOptions looks at the options among some words after "git airlock", before they are read: flag packages speak of them
// in words of their own.
func checkOptions(p page, words []string) error {
	for i := 0; i < len(words); i++ {
		word, value, valued := strings.Cut(words[i], "=")
		if !strings.HasPrefix(word, "-") || word == "-" {
			at := slices.IndexFunc(p.commands, func(c page) bool { return c.name == p.name+" "+word })
			if at < 0 || word == "log" { // which is told of elsewhere; the options of git log are git's
				return nil
			}
			p = p.commands[at]
			continue
		}
		if word == "-h" || word == "--help" {
			return checkHelp(p, words[i+1:])
		}
		o := p.option(word)
		if o == nil && len(word) > 2 {
			o = p.option("--" + strings.TrimLeft(word, "-"))
		}
		if o == nil {
			return noOption(p, word)
		}
		if _, err := strconv.ParseBool(value); o.value == "" && valued && err != nil {
			return within(p.command(), usagef("%s: option %s: %q is not true or false", p.command(), word, gitops.Escape(value)))
		}
		if o.value == "" || valued {
			continue
		}
		if i++; i == len(words) {
			return within(p.command(), usagef("%s: option %s wants a value", p.command(), word))
		}
	}
	return nil
}

// checkHelp looks at the words after -h, which name a command to explain where there are any.
func checkHelp(p page, words []string) error {
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		return nil
	}
	if len(p.commands) == 0 {
		return within(p.command(), usagef("%s: unexpected argument %q", p.command(), words[0]))
	}
	if !slices.ContainsFunc(p.commands, func(c page) bool { return c.name == p.name+" "+words[0] }) {
		return noCommand(p, words[0])
	}
	return nil
}

// noOption is about an option that a command does not have.
func noOption(p page, word string) error {
	names := []string{"--help"}
	for _, o := range p.options {
		names = append(names, o.names...)
	}
	text := "unknown option " + gitops.Escape(word)
	if command := p.command(); command != "" {
		text = command + ": " + text
	}
	e := &usageError{text: text, command: p.command()}
	if meant := recipe.Nearest(word, names); meant != "" && len(word) > 2 {
		e.meant = []string{p.name + " " + meant}
	}
	return e
}

// command is the name of a page's command after "git airlock".
func (p page) command() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.name, "git airlock"), " ")
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
			return usagef("--%s: %q is not %s", name, gitops.Escape(setting.Value), setting.Want)
		}
	}
	return err
}

// engineOption is the engine that was asked for, empty for none.
func engineOption(c *cli.Context) (string, error) {
	engine := c.String(engineFlag.Name)
	if engine != "" && !promote.IsEngine(engine) {
		return "", usagef("--%s: %q is not tree or patch", engineFlag.Name, gitops.Escape(engine))
	}
	return engine, nil
}
