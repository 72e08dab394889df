package manual

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Book is the manual: a page on the program, and one on each command.
type Book struct {
	Program       Page
	Version, Date string      // date is empty if it is not known
	Holds         []string    // the reasons why landing waits, in the order in which they are named
	Rules         []Explained // those of the policy gate
}

// Pages are all pages, by the names of their files.
func (b Book) Pages() map[string]string {
	all := map[string]string{"git-airlock.1": b.main()}
	for _, c := range b.Program.Commands {
		all[c.file()+".1"] = b.page(c)
	}
	return all
}

// file is the name of a page: git-airlock-start.
func (p Page) file() string { return strings.ReplaceAll(p.Name, " ", "-") }

// main is the page on the program as a whole.
func (b Book) main() string {
	app := b.Program
	t := b.newTroff(app)
	t.section("DESCRIPTION")
	for _, text := range model {
		t.paragraph(text)
	}
	t.section("COMMANDS")
	for _, c := range app.Commands {
		t.item(`\fB`+Literal(c.file())+`\fR(1)`, c.Summary)
	}
	t.options(app.Options)
	t.exitStatus()
	t.holds(b.Holds)
	t.section("CONFIGURATION")
	t.paragraph("Settings are git's: `--global`, `--local`, `-c` and `includeIf` work as for git. An option goes before its setting.")
	t.list(settingsExplained(Settings))
	t.paragraph("Of git's own there are")
	t.list(settingsExplained(GitSettings))
	t.section("FILES")
	t.list(files)
	t.section("NOTES OF LANDED COMMITS")
	t.paragraph("A note in refs/notes/airlock is a line, an empty line, and trailers, which `git interpret-trailers --parse` reads:")
	t.list(trailers)
	t.json()
	t.seeAlso(append(pagesOf(app), "git-notes(1)", "git-worktree(1)", "gitignore(5)"))
	return t.String()
}

// page is the page on one command.
func (b Book) page(p Page) string {
	t := b.newTroff(p)
	if len(p.About) > 0 {
		t.section("DESCRIPTION")
		for _, text := range p.About {
			t.paragraph(text)
		}
	}
	if len(p.Commands) > 0 {
		t.section("COMMANDS")
		for _, c := range p.Commands {
			t.item(`\fB`+Literal(strings.Join(c.Synopsis, " "))+`\fR`, strings.Join(append([]string{c.Summary}, c.About...), ". "))
			t.WriteString(".RS\n")
			for _, o := range c.Options {
				t.option(o)
			}
			t.WriteString(".RE\n")
		}
	}
	t.options(p.Options)
	t.exitStatus()
	switch p.CommandName() {
	case "status":
		t.holds(b.Holds)
		t.json()
	case "promote", "stop", "clear", "run":
		t.holds(b.Holds)
	case "policy":
		t.section("RULES")
		t.list(b.Rules)
	}
	if of := p.settings(); len(of) > 0 {
		t.section("CONFIGURATION")
		t.list(settingsExplained(of))
	}
	t.seeAlso(append([]string{"git-airlock(1)"}, slices.DeleteFunc(pagesOf(b.Program), func(name string) bool { return name == p.file()+"(1)" })...))
	return t.String()
}

// withoutOption are the settings that no option goes before, with the commands that read them.
var withoutOption = map[string][]string{"airlock.buildNetwork": {"start", "run", "image"}}

// settings are those that an option of the page goes before, and those that the command reads without one.
func (p Page) settings() []Setting {
	var of []Setting
	for _, s := range Settings {
		key := strings.ToLower(strings.TrimPrefix(s.Key, "airlock."))
		if slices.Contains(withoutOption[s.Key], p.CommandName()) || slices.ContainsFunc(p.Options, func(o Option) bool { return o.key() == key }) {
			of = append(of, s)
		}
	}
	return of
}

// key is the setting that an option would go before, in lower case: of --no-auto-land, autoland.
func (o Option) key() string {
	name := strings.TrimPrefix(strings.TrimPrefix(o.Names[0], "--"), "no-")
	return strings.ToLower(strings.ReplaceAll(name, "-", ""))
}

func pagesOf(app Page) []string {
	var names []string
	for _, c := range app.Commands {
		names = append(names, c.file()+"(1)")
	}
	return names
}

// troff writes a manual page, man(7).
type troff struct {
	strings.Builder
	began bool // a section, which brings the space before a paragraph
}

func (b Book) newTroff(p Page) *troff {
	t := &troff{}
	source := "git-airlock"
	if v, _, _ := strings.Cut(b.Version, " "); v != "unknown" {
		source += " " + v
	}
	fmt.Fprintf(t, ".TH %s 1 %s \"%s\" \"Git Manual\"\n", Literal(strings.ToUpper(p.file())), cmp.Or(b.Date, `""`), Literal(source))
	fmt.Fprint(t, ".nh\n.ad l\n") // words that are to be typed are never broken
	t.section("NAME")
	fmt.Fprintf(t, "%s \\- %s\n", Literal(p.file()), prose(p.Summary))
	t.section("SYNOPSIS")
	t.lines(p.Synopsis)
	return t
}

func (t *troff) section(name string) {
	fmt.Fprintf(t, ".SH %s\n", name)
	t.began = true
}

// lines prints text as it stands.
func (t *troff) lines(text []string) {
	t.WriteString(".nf\n")
	for _, line := range text {
		t.WriteString(Literal(line) + "\n")
	}
	t.WriteString(".fi\n")
}

func (t *troff) paragraph(text string) {
	if !t.began {
		t.WriteString(".PP\n")
	}
	t.began = false
	if strings.HasPrefix(text, " ") {
		t.lines(strings.Split(text, "\n"))
		return
	}
	t.WriteString(prose(text) + "\n")
}

// item explains a term, which is troff already.
func (t *troff) item(term, text string) {
	fmt.Fprintf(t, ".TP\n%s\n%s\n", term, prose(text))
	t.began = false
}

func (t *troff) list(of []Explained) {
	for _, e := range of {
		t.item(`\fB`+Literal(e.Word)+`\fR`, e.Text)
	}
}

func (t *troff) options(of []Option) {
	t.section("OPTIONS")
	for _, o := range of {
		t.option(o)
	}
}

func (t *troff) option(o Option) {
	var names []string
	for _, name := range o.Names {
		names = append(names, `\fB`+Literal(name)+`\fR`)
	}
	term := strings.Join(names, ", ")
	if o.Value != "" {
		term += ` \fI` + Literal(o.Value) + `\fR`
	}
	text := o.Text
	if o.Many {
		text += " (can be given more than once)"
	}
	t.item(term, text)
}

func (t *troff) exitStatus() {
	t.section("EXIT STATUS")
	t.list(ExitStatuses)
	t.paragraph(OfCommands)
}

func (t *troff) holds(reasons []string) {
	t.section("HOLDS")
	t.paragraph("Why landing waits, in the order in which reasons are named when there are several. A hold ends by itself when its cause is gone, " +
		"within a second; `workspace-full` takes some seconds, and the prison it stopped runs again with `git airlock start`.")
	t.list(holdsExplained(reasons))
}

// json explains the documents of status and list.
func (t *troff) json() {
	t.section("JSON")
	t.paragraph("`git airlock status --json` prints an object with the fields below, `git airlock list --json` one of `version` and `airlocks`, which is a " +
		"list of the same. Times are as in RFC 3339; paths and refs are escaped, as on a terminal.")
	t.list(StatusFields)
}

func (t *troff) seeAlso(pages []string) {
	t.section("SEE ALSO")
	for i, p := range pages {
		name, volume, _ := strings.Cut(p, "(")
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		fmt.Fprintf(t, "\\fB%s\\fR(%s%s\n", Literal(name), volume, end)
	}
}

// asTyped are the characters that troff would make something else of (groff_char(7)).
var asTyped = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

// Literal makes text of what is typed or shown as it stands.
func Literal(text string) string {
	text = asTyped.Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text // no request
	}
	return text
}

// prose makes text of sentences: words between backticks are to be typed.
func prose(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			part = `\fB` + strings.TrimPrefix(Literal(part), `\&`) + `\fR`
		} else {
			part = asTyped.Replace(part)
		}
		b.WriteString(part)
	}
	if text := b.String(); strings.HasPrefix(text, ".") {
		return `\&` + text
	}
	return b.String()
}
