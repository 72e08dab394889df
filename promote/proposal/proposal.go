// Package proposal writes the title and the body of a pull request about an agent's commits.
//
// The body is Markdown, and much of its text is an agent's or somebody's who can push notes. Such text is a code span with a
// fence that it does not contain: in a code span no mention, reference, link, image or HTML has an effect. A bar would end
// the cell of a table also in a code span, and renderers differ in how a backslash before it counts, so a broken bar stands
// for it.
package proposal

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/words"
)

// Most is the number of commits that a hosting service shows in a pull request.
const Most = 250

const (
	// subjectLimit is the number of characters of a subject in the body and in the title.
	subjectLimit = 72
	// bodyLimit bounds the bytes of the body. GitHub takes 65,536 characters.
	bodyLimit = 60_000
	// hostsShown bounds the hosts in a row.
	hostsShown = 8
)

// Row describes an agent's commit. None of its text is escaped.
type Row struct {
	Commit    gitops.OID
	Subject   string
	Tree      string // exact, merged or rewritten
	Gate      string
	Reviewers []string
	Perhaps   gitops.OID // a commit without approval that it may be a rewritten form of; empty if the original is certain
	Check     string     // the result of a check of the tree, or what a note says about one; empty if there is neither
	Hosts     []string
	Isolated  bool // there was no network
}

// Proposal describes a pull request.
type Proposal struct {
	Branch string // its short name
	First  string // the subject of the only commit; empty if there are several
	Rows   []Row  // oldest first
	Others int    // commits of the user
}

// Commits returns the number of commits.
func (p Proposal) Commits() int { return len(p.Rows) + p.Others }

// Title returns the title: the subject of the only commit, or else the name of the branch in words. A hosting service may put it
// into a commit, so that neither a mention nor a reference is left in it.
func (p Proposal) Title() string {
	title := p.First
	if title == "" {
		words := p.Branch[strings.LastIndex(p.Branch, "/")+1:]
		title = strings.TrimSpace(strings.NewReplacer("-", " ", "_", " ").Replace(words))
	}
	return strings.NewReplacer("@", "@ ", "#", "# ", "<", "‹", ">", "›", "`", "'", "://", ": //", "www.", "www .", "GH-", "GH - ", "gh-", "gh - ").Replace(shorten(title))
}

// Body returns the body.
func (p Proposal) Body() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Commits of an agent that worked in an airlock: %d of %d.\n\n", len(p.Rows), p.Commits())
	if p.Commits() > Most {
		fmt.Fprintf(&b, "**These are more than %d commits. Many services show no more of them in a pull request.**\n\n", Most)
	}
	if len(p.Rows) > 0 {
		b.WriteString("| commit | tree | gate | reviewed by | check | hosts reached |\n|---|---|---|---|---|---|\n")
	}
	for n, r := range p.Rows {
		row := r.line()
		if b.Len()+len(row) > bodyLimit || n == Most {
			fmt.Fprintf(&b, "\nand %d more\n", len(p.Rows)-n)
			break
		}
		b.WriteString(row)
	}
	b.WriteString("\nTree: with `exact`, the files are those of the agent's commit. With `merged`, they are merged with commits that the agent did not have. " +
		"With `rewritten`, the author has changed the landed commit. The table comes from the notes of the author's repository. The results of checks without a note are of checks that ran there.\n")
	return b.String()
}

func (r Row) line() string {
	nobody := "nobody"
	if r.Perhaps != "" {
		nobody += fmt.Sprintf(" (perhaps `%.12s`, rewritten)", r.Perhaps)
	}
	return fmt.Sprintf("| %s %s | %s | %s | %s | %s | %s |\n", Code(fmt.Sprintf("%.12s", r.Commit)), Code(shorten(r.Subject)), Code(r.Tree), Code(r.Gate),
		several(r.Reviewers, nobody), cmp.Or(r.Check, "not run"), several(r.Hosts, map[bool]string{true: "none", false: "not recorded"}[r.Isolated]))
}

// several returns texts as code spans, or otherwise if there are none.
func several(texts []string, otherwise string) string {
	if len(texts) == 0 {
		return otherwise
	}
	var spans []string
	for _, t := range texts[:min(len(texts), hostsShown)] {
		spans = append(spans, Code(shorten(t)))
	}
	if more := len(texts) - len(spans); more > 0 {
		spans = append(spans, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(spans, ", ")
}

// shorten escapes a text and cuts it.
func shorten(text string) string { return words.Shorten(gitops.Text(text).String(), subjectLimit) }

// Code returns a text as a code span of Markdown that can be in a table.
func Code(text string) string {
	text = strings.ReplaceAll(gitops.Text(text).String(), "|", "¦")
	if strings.TrimSpace(text) == "" {
		return "–"
	}
	longest, run := 0, 0
	for _, r := range text {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 || strings.HasPrefix(text, " ") || strings.HasSuffix(text, " ") {
		text = " " + text + " " // Markdown removes one space at each side
	}
	return fence + text + fence
}
