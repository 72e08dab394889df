package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// page is what there is to say of the program or of one of its commands. -h prints it, the manual and the completions
// are made of it.
type page struct {
	name     string // as it is typed: "git airlock start"
	summary  string
	synopsis []string
	about    []string // paragraphs; the lines of one that is indented stay lines
	commands []page
	options  []option
}

// option is one that a command takes.
type option struct {
	names []string // with their hyphens, the long one first
	value string   // what it takes, in the words of its help: "auto|native|docker"; empty for none
	text  string
	many  bool // it can be given more than once
}

// appPage describes the program.
func appPage(app *cli.App) page {
	p := page{name: app.Name, summary: app.Usage, synopsis: lines(app.UsageText), about: paragraphs(app.Description), options: options(app.VisibleFlags())}
	for _, c := range app.VisibleCommands() {
		if c.Name != "help" {
			p.commands = append(p.commands, commandPage(app.Name, c))
		}
	}
	return p
}

// commandPage describes a command of the program, or of another command.
func commandPage(parent string, c *cli.Command) page {
	p := page{name: parent + " " + c.Name, summary: c.Usage, synopsis: lines(c.UsageText), about: paragraphs(c.Description), options: options(c.VisibleFlags())}
	for _, sub := range c.VisibleCommands() {
		if sub.Name != "help" {
			p.commands = append(p.commands, commandPage(p.name, sub))
		}
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

// paragraphs splits a description, without the exit statuses that each ends with.
func paragraphs(text string) []string {
	var all []string
	for _, p := range strings.Split(strings.TrimSuffix(text, exitStatusHelp), "\n\n") {
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

func options(flags []cli.Flag) []option {
	var all []option
	for _, f := range flags {
		o := option{}
		for _, name := range f.Names() {
			hyphens := "--"
			if len(name) == 1 {
				hyphens = "-"
			}
			o.names = append(o.names, hyphens+name)
		}
		slices.SortFunc(o.names, func(a, b string) int { return len(b) - len(a) })
		if d, ok := f.(cli.DocGenerationFlag); ok {
			o.value, o.text = unquote(d.GetUsage())
			if !d.TakesValue() {
				o.value = ""
			} else if o.value == "" {
				o.value = "value"
			}
		}
		if s, ok := f.(cli.DocGenerationSliceFlag); ok {
			o.many = s.IsSliceFlag()
		}
		all = append(all, o)
	}
	return all
}

// unquote takes the word between backticks out of a flag's usage: it stands for the value.
func unquote(usage string) (value, text string) {
	before, rest, _ := strings.Cut(usage, "`")
	value, after, quoted := strings.Cut(rest, "`")
	if !quoted {
		return "", usage
	}
	return value, before + value + after
}

// choices are the values an option chooses from: of "auto|native|docker" the three; none for other words.
func (o option) choices() []string {
	if !strings.Contains(o.value, "|") || strings.ContainsAny(o.value, "[]") {
		return nil
	}
	return strings.Split(o.value, "|")
}

func (o option) usage() string {
	text := strings.Join(o.names, ", ")
	if o.value != "" {
		text += " " + o.value
	}
	if o.many {
		text += " ..."
	}
	return text
}

// How wide a help text is, less where a terminal has less, and where in it the texts on options begin.
const (
	helpWidth      = 100
	leastHelpWidth = 66
	optionColumn   = 34
	commandColumn  = 13
)

// widthOf is how wide a help text can be where it is written to.
func widthOf(w io.Writer) int {
	if f, ok := w.(*outlet); ok && isTerminal(w) {
		return max(leastHelpWidth, min(helpWidth, int(terminalSize(int(f.Fd())).Cols)-1))
	}
	return helpWidth
}

// helpCommand prints what -h prints.
func helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "explain a command",
		UsageText:       "git airlock help [COMMAND]",
		Description:     exitStatusHelp,
		Hidden:          true,
		HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			p := appPage(c.App)
			for _, word := range c.Args().Slice() {
				i := slices.IndexFunc(p.commands, func(sub page) bool { return sub.name == p.name+" "+word })
				if i < 0 {
					return noCommand(p, word)
				}
				p = p.commands[i]
			}
			p.help(c.App.Writer, widthOf(c.App.Writer))
			return nil
		},
	}
}

// printHelp is how -h looks; cli hands it what help was asked for.
func printHelp(w io.Writer, _ string, of any) {
	switch of := of.(type) {
	case *cli.App:
		appPage(of).help(w, widthOf(w))
	case *cli.Command:
		commandPage(strings.TrimSuffix(strings.TrimSuffix(of.HelpName, of.Name), " "), of).help(w, widthOf(w))
	}
}

func (p page) help(w io.Writer, width int) {
	fmt.Fprintf(w, "NAME\n%s\n\nUSAGE\n", indented(p.name+" - "+p.summary, 3, width))
	for _, line := range p.synopsis {
		fmt.Fprintln(w, "   "+line)
	}
	if len(p.about) > 0 {
		fmt.Fprintln(w, "\nDESCRIPTION")
		for i, text := range p.about {
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintln(w, indented(text, 3, width))
		}
	}
	if len(p.commands) > 0 {
		fmt.Fprintln(w, "\nCOMMANDS")
		for _, c := range p.commands {
			fmt.Fprintln(w, entry(c.name[strings.LastIndex(c.name, " ")+1:], c.summary, commandColumn, width))
		}
	}
	fmt.Fprintln(w, "\nOPTIONS")
	for _, o := range p.options {
		fmt.Fprintln(w, entry(o.usage(), o.text, optionColumn, width))
	}
	fmt.Fprintf(w, "\n%s\n", wrap(exitStatusHelp, width))
}

// entry is a word with the text on it in a column of its own.
func entry(word, text string, column, width int) string {
	text = indented(text, column, width)
	if word = "   " + word; len(word)+2 > column {
		return word + "\n" + text
	}
	return word + text[len(word):]
}

// indented sets a text in, wrapped unless its lines are to stay.
func indented(text string, by, width int) string {
	margin := strings.Repeat(" ", by)
	if !strings.HasPrefix(text, " ") {
		text = wrap(text, width-by)
	}
	return margin + strings.ReplaceAll(text, "\n", "\n"+margin)
}

// wrap breaks a paragraph into lines.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
