package cmdline

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/manual"
)

// ProgramPage describes the program.
func ProgramPage(app *cli.App) manual.Page {
	return commandPage("", &cli.Command{Name: app.Name, Usage: app.Usage, UsageText: app.UsageText, Description: app.Description, Flags: app.Flags,
		Subcommands: app.Commands})
}

// commandPage describes the program, or a command of the program or of another command.
func commandPage(parent string, c *cli.Command) manual.Page {
	p := manual.Page{Name: strings.TrimSpace(parent + " " + c.Name), Summary: c.Usage, Synopsis: lines(c.UsageText), About: paragraphs(c.Description), Options: options(c.VisibleFlags())}
	for _, sub := range c.VisibleCommands() {
		p.Commands = append(p.Commands, commandPage(p.Name, sub))
	}
	return p
}

func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		all = append(all, strings.TrimSpace(line))
	}
	return all
}

// paragraphs splits a description.
func paragraphs(text string) []string {
	var all []string
	for _, p := range strings.Split(text, "\n\n") {
		switch {
		case strings.TrimSpace(p) == "":
		case strings.HasPrefix(p, " "):
			all = append(all, strings.TrimRight(p, "\n"))
		default:
			all = append(all, strings.Join(strings.Fields(p), " "))
		}
	}
	return all
}

func options(flags []cli.Flag) []manual.Option {
	var all []manual.Option
	for _, f := range flags {
		o := manual.Option{}
		for _, name := range f.Names() {
			hyphens := "--"
			if len(name) == 1 {
				hyphens = "-"
			}
			o.Names = append(o.Names, hyphens+name)
		}
		slices.SortFunc(o.Names, func(a, b string) int { return len(b) - len(a) })
		if d, ok := f.(cli.DocGenerationFlag); ok {
			o.Value, o.Text = unquote(d.GetUsage())
			if !d.TakesValue() {
				o.Value = ""
			} else if o.Value == "" {
				o.Value = "value"
			}
		}
		if s, ok := f.(cli.DocGenerationSliceFlag); ok {
			o.Many = s.IsSliceFlag()
		}
		all = append(all, o)
	}
	return all
}

// unquote returns the placeholder of a flag's value, which is between backticks in its usage, and the usage without backticks.
func unquote(usage string) (value, text string) {
	before, rest, _ := strings.Cut(usage, "`")
	value, after, quoted := strings.Cut(rest, "`")
	if !quoted {
		return "", usage
	}
	return value, before + value + after
}

// PageOf describes the command of a context.
func PageOf(c *cli.Context) manual.Page {
	if c.Command == nil || c.Command.HelpName == "" || c.Command.HelpName == c.App.Name {
		return ProgramPage(c.App)
	}
	return commandPage(strings.TrimSuffix(strings.TrimSuffix(c.Command.HelpName, c.Command.Name), " "), c.Command)
}
