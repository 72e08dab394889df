package manual

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
)

// Page is what there is to say of the program or of one of its commands. -h prints it, the manual and the completions
// are made of it.
type Page struct {
	Name     string // as it is typed: "git airlock start"
	Summary  string
	Synopsis []string
	About    []string // paragraphs; the lines of one that is indented stay lines
	Commands []Page
	Options  []Option
}

// Option is one that a command takes.
type Option struct {
	Names []string // with their hyphens, the long one first
	Value string   // what it takes, in the words of its help: "auto|native|docker"; empty for none
	Text  string
	Many  bool // it can be given more than once
}

// choices are the values an option chooses from: of "auto|native|docker" the three; none for other words.
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

// How wide a help text is, less where a terminal has less, and where in it the texts on options begin.
const (
	HelpWidth      = 100
	LeastHelpWidth = 66
	optionColumn   = 34
	commandColumn  = 13
)

// WidthOf is how wide a help text can be where it is written to.
func WidthOf(w io.Writer) int {
	if f, ok := w.(*ui.Output); ok && ui.IsTerminal(w) {
		return max(LeastHelpWidth, min(HelpWidth, ui.Columns(int(f.Fd()))-1))
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

// CommandName is the name of a page's command after "git airlock".
func (p Page) CommandName() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.Name, "git airlock"), " ")
}

// Option finds an option by its name.
func (p Page) Option(name string) *Option {
	for i, o := range p.Options {
		if slices.Contains(o.Names, name) {
			return &p.Options[i]
		}
	}
	return nil
}
