package manual

import (
	"embed"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
)

// sheet is a page of the manual, independent of its format.
type sheet struct {
	name    string // git-airlock-start
	volume  string // the manual's section: 1 commands, 7 topics
	summary string
	usage   []string
	parts   []part
}

// part is a part of a sheet. Words between backticks are literal, and name(1) is a reference.
type part struct {
	kind  kind
	term  string // of an item
	value string // that an option takes
	text  string // of a literal, its lines
}

type kind int

const (
	section kind = iota
	paragraph
	literal
	bullet
	item
	deeper  // the following entries belong to the previous entry
	shallow // ends deeper
)

func (s *sheet) add(k kind, text string) { s.parts = append(s.parts, part{kind: k, text: text}) }

// paragraph adds a paragraph. It keeps the lines of an indented text.
func (s *sheet) paragraph(text string) {
	if strings.HasPrefix(text, " ") {
		s.add(literal, text)
		return
	}
	s.add(paragraph, text)
}

func (s *sheet) item(term, text string) {
	s.parts = append(s.parts, part{kind: item, term: term, text: text})
}

func (s *sheet) list(of []Explained) {
	for _, e := range of {
		s.item("`"+e.Word+"`", e.Text)
	}
}

// topics has the texts of the manual that describe neither a command nor an option, in Markdown. A topic with the name of a command is a
// part of that command's page. Every other topic has a page of its own.
//
//go:embed topics/*.md
var topics embed.FS

// topic returns a topic's text. A missing topic is empty.
func topic(name string) string {
	text, _ := topics.ReadFile("topics/" + name + ".md")
	return string(text)
}

func topicNames() (names []string) {
	files, _ := fs.Glob(topics, "topics/*.md")
	for _, f := range files {
		names = append(names, strings.TrimSuffix(path.Base(f), ".md"))
	}
	return names
}

// tableCell matches a cell in the row of a table. An escaped bar is text.
var tableCell = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:[^|\\]|\\.)+`) })

// markdown adds a topic: titles, paragraphs, lists, tables, and indented lines.
func (s *sheet) markdown(text string) {
	for _, block := range strings.Split(strings.TrimSpace(joinCode(text)), "\n\n") {
		switch {
		case block == "":
		case strings.HasPrefix(block, "# "):
			s.summary = strings.TrimPrefix(block, "# ")
		case strings.HasPrefix(block, "## "):
			s.add(section, strings.TrimPrefix(block, "## "))
		case strings.HasPrefix(block, "    "):
			s.add(literal, strings.ReplaceAll(block, "\x00", ""))
		case strings.HasPrefix(block, "- "):
			for _, b := range strings.Split(strings.TrimPrefix(block, "- "), "\n- ") {
				s.add(bullet, strings.Join(strings.Fields(b), " "))
			}
		case strings.HasPrefix(block, "| "):
			s.table(strings.Split(block, "\n"))
		default:
			s.add(paragraph, strings.Join(strings.Fields(block), " "))
		}
	}
}

// joinCode marks empty lines between indented lines, so that they do not end the block.
func joinCode(text string) string {
	return regexp.MustCompile(`(\n    [^\n]*)\n\n    `).ReplaceAllString(text, "$1\n\x00\n    ")
}

// table converts the rows of a table to items: the first cell is the term. Several other cells get the names of their columns.
func (s *sheet) table(rows []string) {
	head := cellsOf(rows[0])
	for _, row := range rows[min(2, len(rows)):] {
		cells := cellsOf(row)
		texts := cells[1:]
		if len(texts) > 1 {
			for i, text := range texts {
				texts[i] = head[i+1] + ": " + text
			}
		}
		s.item(cells[0], strings.Join(texts, "; "))
	}
}

func cellsOf(row string) []string {
	cells := tableCell().FindAllString(strings.TrimSpace(row), -1)
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, `\|`, "|"))
	}
	return cells
}
