package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// manualCommand writes the manual; scripts/install and scripts/release call it.
func manualCommand() *cli.Command {
	return &cli.Command{
		Name: "manual", Usage: "print a page of the manual, or write all of them",
		UsageText: "git airlock manual [PAGE]\ngit airlock manual --dir DIRECTORY",
		Description: "Pages are in troff, such as \"git-airlock-start\" (default: \"git-airlock\"); man -l shows them. " +
			"With SOURCE_DATE_EPOCH they are of that date.\n\n" + exitStatusHelp,
		Flags:           []cli.Flag{&cli.StringFlag{Name: "dir", Usage: "write all pages into the `DIRECTORY`"}},
		Hidden:          true,
		HideHelpCommand: true,
		OnUsageError:    onUsageError,
		Action: func(c *cli.Context) error {
			pages := manual(appPage(c.App))
			if dir := c.String("dir"); dir != "" {
				for name, text := range pages {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // for all to read
						return err
					}
				}
				return nil
			}
			name := "git-airlock"
			if c.Args().Present() {
				name = c.Args().First()
			}
			text, ok := pages[strings.TrimSuffix(name, ".1")+".1"]
			if !ok {
				return usagef("manual: there is no page %q", name)
			}
			_, err := io.WriteString(c.App.Writer, text)
			return err
		},
	}
}

// manual is all pages, by the names of their files.
func manual(app page) map[string]string {
	all := map[string]string{"git-airlock.1": mainPage(app)}
	for _, c := range app.commands {
		all[c.file()+".1"] = c.troff(app)
	}
	return all
}

// file is the name of a page: git-airlock-start.
func (p page) file() string { return strings.ReplaceAll(p.name, " ", "-") }

// mainPage is the page on the program as a whole.
func mainPage(app page) string {
	t := newTroff(app)
	t.section("DESCRIPTION")
	for _, text := range model {
		t.paragraph(text)
	}
	t.section("COMMANDS")
	for _, c := range app.commands {
		t.item(`\fB`+literal(c.file())+`\fR(1)`, c.summary)
	}
	t.options(app.options)
	t.exitStatus()
	t.holds()
	t.section("CONFIGURATION")
	t.paragraph("Settings are git's: `--global`, `--local`, `-c` and `includeIf` work as for git. An option goes before its setting.")
	t.list(settingsExplained(settings))
	t.paragraph("Of git's own there are")
	t.list(settingsExplained(gitSettings))
	t.section("FILES")
	t.list(files)
	t.section("NOTES OF LANDED COMMITS")
	t.paragraph("A note in refs/notes/airlock is a line, an empty line, and trailers, which `git interpret-trailers --parse` reads:")
	t.list(trailers)
	t.json()
	t.seeAlso(append(pagesOf(app), "git-notes(1)", "git-worktree(1)", "gitignore(5)"))
	return t.String()
}

// troff is the page on one command.
func (p page) troff(app page) string {
	t := newTroff(p)
	if len(p.about) > 0 {
		t.section("DESCRIPTION")
		for _, text := range p.about {
			t.paragraph(text)
		}
	}
	if len(p.commands) > 0 {
		t.section("COMMANDS")
		for _, c := range p.commands {
			t.item(`\fB`+literal(strings.Join(c.synopsis, " "))+`\fR`, strings.Join(append([]string{c.summary}, c.about...), ". "))
			t.WriteString(".RS\n")
			for _, o := range c.options {
				t.option(o)
			}
			t.WriteString(".RE\n")
		}
	}
	t.options(p.options)
	t.exitStatus()
	switch p.command() {
	case "status":
		t.holds()
		t.json()
	case "promote", "stop", "clear", "run":
		t.holds()
	case "policy":
		t.section("RULES")
		t.list(rulesExplained())
	}
	if of := p.settings(); len(of) > 0 {
		t.section("CONFIGURATION")
		t.list(settingsExplained(of))
	}
	t.seeAlso(append([]string{"git-airlock(1)"}, slices.DeleteFunc(pagesOf(app), func(name string) bool { return name == p.file()+"(1)" })...))
	return t.String()
}

// withoutOption are the settings that no option goes before, with the commands that read them.
var withoutOption = map[string][]string{"airlock.buildNetwork": {"start", "run", "image"}}

// settings are those that an option of the page goes before, and those that the command reads without one.
func (p page) settings() []setting {
	var of []setting
	for _, s := range settings {
		key := strings.ToLower(strings.TrimPrefix(s.key, "airlock."))
		if slices.Contains(withoutOption[s.key], p.command()) || slices.ContainsFunc(p.options, func(o option) bool { return o.key() == key }) {
			of = append(of, s)
		}
	}
	return of
}

// key is the setting that an option would go before, in lower case: of --no-auto-land, autoland.
func (o option) key() string {
	name := strings.TrimPrefix(strings.TrimPrefix(o.names[0], "--"), "no-")
	return strings.ToLower(strings.ReplaceAll(name, "-", ""))
}

func pagesOf(app page) []string {
	var names []string
	for _, c := range app.commands {
		names = append(names, c.file()+"(1)")
	}
	return names
}

// troff writes a manual page, man(7).
type troff struct {
	strings.Builder
	began bool // a section, which brings the space before a paragraph
}

func newTroff(p page) *troff {
	t := &troff{}
	source := "git-airlock"
	if v, _, _ := strings.Cut(versionText(), " "); v != "unknown" {
		source += " " + v
	}
	fmt.Fprintf(t, ".TH %s 1 %s \"%s\" \"Git Manual\"\n", literal(strings.ToUpper(p.file())), manualDate(), literal(source))
	fmt.Fprint(t, ".nh\n.ad l\n") // words that are to be typed are never broken
	t.section("NAME")
	fmt.Fprintf(t, "%s \\- %s\n", literal(p.file()), prose(p.summary))
	t.section("SYNOPSIS")
	t.lines(p.synopsis)
	return t
}

// manualDate is the date of a page: of the release, else of the commit, else none.
func manualDate() string {
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC().Format(time.DateOnly)
	}
	if t, err := time.Parse(time.RFC3339, buildSetting("vcs.time")); err == nil {
		return t.UTC().Format(time.DateOnly)
	}
	return `""`
}

func (t *troff) section(name string) {
	fmt.Fprintf(t, ".SH %s\n", name)
	t.began = true
}

// lines prints text as it stands.
func (t *troff) lines(text []string) {
	t.WriteString(".nf\n")
	for _, line := range text {
		t.WriteString(literal(line) + "\n")
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

func (t *troff) list(of []explained) {
	for _, e := range of {
		t.item(`\fB`+literal(e.word)+`\fR`, e.text)
	}
}

func (t *troff) options(of []option) {
	t.section("OPTIONS")
	for _, o := range of {
		t.option(o)
	}
}

func (t *troff) option(o option) {
	var names []string
	for _, name := range o.names {
		names = append(names, `\fB`+literal(name)+`\fR`)
	}
	term := strings.Join(names, ", ")
	if o.value != "" {
		term += ` \fI` + literal(o.value) + `\fR`
	}
	text := o.text
	if o.many {
		text += " (can be given more than once)"
	}
	t.item(term, text)
}

func (t *troff) exitStatus() {
	t.section("EXIT STATUS")
	t.list(exitStatuses)
	t.paragraph(ofCommands)
}

func (t *troff) holds() {
	t.section("HOLDS")
	t.paragraph("Why landing waits, in the order in which reasons are named when there are several. A hold ends by itself when its cause is gone, " +
		"within a second; `workspace-full` takes some seconds, and the prison it stopped runs again with `git airlock start`.")
	t.list(holdsExplained())
}

// json explains the documents of status and list.
func (t *troff) json() {
	t.section("JSON")
	t.paragraph("`git airlock status --json` prints an object with the fields below, `git airlock list --json` one of `version` and `airlocks`, which is a " +
		"list of the same. Times are as in RFC 3339; paths and refs are escaped, as on a terminal.")
	t.list(statusFields)
}

func (t *troff) seeAlso(pages []string) {
	t.section("SEE ALSO")
	for i, p := range pages {
		name, volume, _ := strings.Cut(p, "(")
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		fmt.Fprintf(t, "\\fB%s\\fR(%s%s\n", literal(name), volume, end)
	}
}

// asTyped are the characters that troff would make something else of (groff_char(7)).
var asTyped = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

// literal makes text of what is typed or shown as it stands.
func literal(text string) string {
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
			part = `\fB` + strings.TrimPrefix(literal(part), `\&`) + `\fR`
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
