package manual

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
)

// Page describes the program or one of its commands. -h prints it, and the manual and the completions are made from it.
type Page struct {
	Name     string // as typed: "git airlock start"
	Summary  string
	Synopsis []string
	About    []string // paragraphs; the lines of an indented paragraph are kept
	Commands []Page
	Options  []Option
}

// Option describes an option of a command.
type Option struct {
	Names []string // with their hyphens, the long one first
	Value string   // the placeholder of its value in the help: "auto|native|docker"; empty for none
	Text  string
	Many  bool // it can be given more than once
}

// choices returns the possible values of an option: the three of "auto|native|docker", and none for other placeholders.
func (o Option) choices() []string {
	if !strings.Contains(o.Value, "|") || strings.ContainsAny(o.Value, "[]") {
		return nil
	}
	return strings.Split(o.Value, "|")
}

func (o Option) usage() string {
	text := strings.Join(o.Names, ", ")
	if o.Value != "" {
		text += " " + o.Value
	}
	if o.Many {
		text += " ..."
	}
	return text
}

// The width of help texts, which is smaller on a narrow terminal, and the columns of descriptions.
const (
	HelpWidth      = 100
	LeastHelpWidth = 66
	optionColumn   = 34
	commandColumn  = 13
)

// WidthOf returns the width of a help text that is written to w.
func WidthOf(w io.Writer) int {
	if f, ok := w.(*ui.Output); ok && ui.IsTerminal(w) {
		return max(LeastHelpWidth, min(HelpWidth, ui.Columns(f.File)-1))
	}
	return HelpWidth
}

// Help prints the page as -h does.
func (p Page) Help(w io.Writer, width int) {
	fmt.Fprintf(w, "NAME\n%s\n\nUSAGE\n", indented(p.Name+" - "+p.Summary, 3, width))
	for _, line := range p.Synopsis {
		fmt.Fprintln(w, "   "+line)
	}
	if len(p.About) > 0 {
		fmt.Fprintln(w, "\nDESCRIPTION")
		for i, text := range p.About {
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintln(w, indented(text, 3, width))
		}
	}
	if len(p.Commands) > 0 {
		fmt.Fprintln(w, "\nCOMMANDS")
		for _, c := range p.Commands {
			fmt.Fprintln(w, entry(c.Name[strings.LastIndex(c.Name, " ")+1:], c.Summary, commandColumn, width))
		}
	}
	fmt.Fprintln(w, "\nOPTIONS")
	for _, o := range p.Options {
		fmt.Fprintln(w, entry(o.usage(), o.Text, optionColumn, width))
	}
	fmt.Fprintf(w, "\n%s\n", wrap(exitStatusHelp, width))
}

// entry returns a word with its description in a second column.
func entry(word, text string, column, width int) string {
	text = indented(text, column, width)
	if word = "   " + word; len(word)+2 > column {
		return word + "\n" + text
	}
	return word + text[len(word):]
}

// indented indents a text. It wraps the text, unless the text is indented already.
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

// CommandName returns the name of a page's command after "git airlock".
func (p Page) CommandName() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.Name, "git airlock"), " ")
}

// Option returns an option by its name, or nil.
func (p Page) Option(name string) *Option {
	for i, o := range p.Options {
		if slices.Contains(o.Names, name) {
			return &p.Options[i]
		}
	}
	return nil
}
