package manual

import (
	"slices"
	"strings"
)

// Book is the manual: a page on the program, one on each command, and one on each topic.
type Book struct {
	Program       Page
	Version, Date string      // date is empty if it is not known
	Holds         []string    // the hold reasons, in the order in which they are listed
	Rules         []Explained // the rules of the policy gate
	Agents        []Explained // the known agents, with their pages in Markdown
}

// Pages returns all pages for man(1), by the names of their files: git-airlock-start.1.
func (b Book) Pages() map[string]string {
	source := "git-airlock"
	if v, _, _ := strings.Cut(b.Version, " "); v != "unknown" {
		source += " " + v
	}
	all := map[string]string{}
	for _, s := range b.sheets() {
		all[s.name+"."+s.volume] = s.troff(source, b.Date)
	}
	return all
}

// Markdown returns all pages for the web, by the names of their files: git-airlock-start.md.
func (b Book) Markdown() map[string]string {
	all, names := map[string]string{}, map[string]bool{}
	for _, s := range b.sheets() {
		names[s.name] = true
	}
	for _, s := range b.sheets() {
		all[s.name+".md"] = s.markdownText(names)
	}
	return all
}

// Topic returns the manual page on a topic or an agent as text, whose lines have at most width characters. Without such a page, the text is empty.
func (b Book) Topic(word string, width int) string {
	all := b.sheets()
	at := slices.IndexFunc(all, func(s *sheet) bool { return s.name == "git-airlock-"+word && s.volume == "7" })
	if at < 0 {
		return ""
	}
	var text strings.Builder
	for line := range strings.Lines(all[at].markdownText(nil)) {
		switch item, is := strings.CutPrefix(line, "- "); {
		case is:
			line = "- " + strings.TrimPrefix(indented(item, 2, width), "  ") + "\n"
		case !strings.HasPrefix(line, " "):
			line = wrap(line, width) + "\n"
		}
		text.WriteString(line)
	}
	return text.String()
}

// sheets returns all pages.
func (b Book) sheets() []*sheet {
	all := []*sheet{b.main()}
	for _, c := range b.Program.Commands {
		all = append(all, b.page(c))
	}
	for _, name := range b.topicPages() {
		s := &sheet{name: "git-airlock-" + name, volume: "7"}
		s.markdown(topic(name))
		b.seeAlso(s)
		all = append(all, s)
	}
	for _, a := range b.Agents {
		s := &sheet{name: "git-airlock-" + a.Word, volume: "7"}
		s.markdown(a.Text)
		s.add(section, "SEE ALSO")
		s.add(paragraph, "git-airlock-agents(1), git-airlock-start(1), git-airlock-run(1), git-airlock-visit(1), git-airlock-net(1)")
		all = append(all, s)
	}
	return all
}

// topicPages returns the topics that belong to no command.
func (b Book) topicPages() []string {
	return slices.DeleteFunc(topicNames(), func(name string) bool {
		return slices.ContainsFunc(b.Program.Commands, func(c Page) bool { return c.CommandName() == name })
	})
}

// file returns the name of a page: git-airlock-start.
func (p Page) file() string { return strings.ReplaceAll(p.Name, " ", "-") }

func newSheet(p Page) *sheet {
	return &sheet{name: p.file(), volume: "1", summary: p.Summary, usage: p.Synopsis}
}

// main returns the page on the program as a whole.
func (b Book) main() *sheet {
	app := b.Program
	s := newSheet(app)
	s.add(section, "DESCRIPTION")
	for _, text := range model {
		s.paragraph(text)
	}
	s.add(section, "COMMANDS")
	for _, c := range app.Commands {
		s.item(c.file()+"(1)", c.Summary)
	}
	s.options(app.Options)
	s.exitStatus()
	s.holds(b.Holds)
	s.add(section, "CONFIGURATION")
	s.paragraph("Settings are in git's configuration: `--global`, `--local`, `-c` and `includeIf` work as for git. An option has priority over its setting.")
	s.list(settingsExplained(Settings))
	s.paragraph("These settings work as they do for git's own commands:")
	s.list(settingsExplained(GitSettings))
	s.add(section, "FILES")
	s.list(files)
	s.add(section, "NOTES OF LANDED COMMITS")
	s.paragraph("A note in refs/notes/airlock has a subject line, an empty line, and these trailers, which `git interpret-trailers --parse` reads:")
	s.list(trailers)
	s.paragraph("A plain `git push` and `git fetch` leave the notes where they are. To share them: `git airlock share`, and on the other side " +
		"`git airlock fetch`, or with git alone `git push origin refs/notes/airlock` and `git fetch origin refs/notes/airlock:refs/notes/airlock`.")
	s.json()
	b.seeAlso(s, "git-notes(1)", "git-worktree(1)", "gitignore(5)")
	return s
}

// page returns the page on one command.
func (b Book) page(p Page) *sheet {
	s := newSheet(p)
	if len(p.About) > 0 {
		s.add(section, "DESCRIPTION")
		for _, text := range p.About {
			s.paragraph(text)
		}
	}
	if len(p.Commands) > 0 {
		s.add(section, "COMMANDS")
		for _, c := range p.Commands {
			s.item("`"+strings.Join(c.Synopsis, " ")+"`", strings.Join(append([]string{c.Summary}, c.About...), ". "))
			s.add(deeper, "")
			for _, o := range c.Options {
				s.option(o)
			}
			s.add(shallow, "")
		}
	}
	s.options(p.Options)
	s.markdown(topic(p.CommandName()))
	s.exitStatus()
	switch p.CommandName() {
	case "status":
		s.holds(b.Holds)
		s.json()
	case "promote", "stop", "clear", "run":
		s.holds(b.Holds)
	case "policy":
		s.add(section, "RULES")
		s.list(b.Rules)
	}
	if of := p.settings(); len(of) > 0 {
		s.add(section, "CONFIGURATION")
		s.list(settingsExplained(of))
	}
	b.seeAlso(s)
	return s
}

// settings returns the settings that are explained on the page of a command.
func (p Page) settings() []Setting {
	return slices.DeleteFunc(slices.Clone(Settings), func(s Setting) bool {
		return !slices.Contains(strings.Fields(s.Commands), p.CommandName())
	})
}

func (s *sheet) options(of []Option) {
	s.add(section, "OPTIONS")
	for _, o := range of {
		s.option(o)
	}
}

func (s *sheet) option(o Option) {
	text := o.Text
	if o.Many {
		text += " (can be given more than once)"
	}
	s.parts = append(s.parts, part{kind: item, term: "`" + strings.Join(o.Names, "`, `") + "`", value: o.Value, text: text})
}

func (s *sheet) exitStatus() {
	s.add(section, "EXIT STATUS")
	s.list(exitStatuses)
	s.paragraph(ofCommands)
}

func (s *sheet) holds(reasons []string) {
	s.add(section, "HOLDS")
	s.paragraph("A hold is a reason why commits do not land. Several holds are listed in the order below. A hold ends by itself within a second after " +
		"its cause is gone. `workspace-full` takes some seconds, and `git airlock start` starts the stopped prison again.")
	s.list(holdsExplained(reasons))
}

// json explains the documents of status and list.
func (s *sheet) json() {
	s.add(section, "JSON")
	s.paragraph("`git airlock status --json` prints an object with the fields below. `git airlock list --json` prints an object with `version` and `airlocks`, a " +
		"list of such objects. Times are in the format of RFC 3339. Paths and refs are escaped, as on a terminal.")
	s.list(StatusFields)
}

// seeAlso lists all other pages, and the given pages of other programs.
func (b Book) seeAlso(s *sheet, others ...string) {
	names := []string{"git-airlock(1)"}
	for _, c := range b.Program.Commands {
		names = append(names, c.file()+"(1)")
	}
	for _, name := range b.topicPages() {
		names = append(names, "git-airlock-"+name+"(7)")
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == s.name+"("+s.volume+")" })
	s.add(section, "SEE ALSO")
	s.add(paragraph, strings.Join(append(names, others...), ", "))
}
