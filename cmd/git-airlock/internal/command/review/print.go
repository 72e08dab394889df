package review

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/words"
)

// listing prints a document as text.
type listing struct {
	document
	paint  ui.Paint
	width  int // columns of the terminal; 0 without one
	number int // columns of each part of a line
	lines  int
	files  int
}

// newListing returns the listing of a document for standard output.
func newListing(d document, p ui.Paint) listing {
	l := listing{document: d, paint: p}
	if ui.IsTerminal(ui.Stdout) {
		l.width = ui.Columns(os.Stdout)
	}
	for _, r := range d.Commits {
		l.number = max(l.number, len(r.numeral()))
		l.lines = max(l.lines, len(r.lines()))
		l.files = max(l.files, len(r.fileCount()))
	}
	return l
}

// Print prints the list, as [ui.Printed].
func (d document) Print(out io.Writer, p ui.Paint, _ time.Time) error {
	return newListing(d, p).print(context.Background(), out, nil)
}

// printRebased prints the commits that have landed before the agent rebased them, and of which nothing lands again.
func (d document) printRebased(out io.Writer, p ui.Paint) (err error) {
	for _, x := range d.Rebased {
		if err == nil {
			_, err = fmt.Fprintf(out, "landed before it was rebased, as %s: %s\n", p.Yellow(fmt.Sprintf("%.12s", x.Commit)), x.Subject)
		}
	}
	return err
}

// print prints the commits. After each one it calls more, unless it is nil.
func (l listing) print(ctx context.Context, out io.Writer, more func(context.Context, io.Writer, ui.Paint, reviewed) error) error {
	if err := l.printRebased(out, l.paint); err != nil {
		return err
	}
	if len(l.Commits) == 0 {
		_, err := fmt.Fprintln(out, "nothing waits for a review")
		return err
	}
	if more != nil {
		l.width = 0 // a commit that is shown in full has its whole subject
	}
	for i, r := range l.Commits {
		if i > 0 && more != nil {
			fmt.Fprintln(out)
		}
		err := l.commit(out, r)
		if err == nil && more != nil {
			err = more(ctx, out, l.paint, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commit prints one commit, with the lines below it.
func (l listing) commit(out io.Writer, r reviewed) error {
	line := fmt.Sprintf("  %-*s  %-*s  ", l.lines, r.lines(), l.files, r.fileCount())
	used := l.number + 2 + stateWidth + 2 + len(r.short()) + len(line)
	if _, err := fmt.Fprintf(out, "%*s  %s  %s%s%s\n", l.number, r.numeral(), painted(l.paint, r.State), l.paint.Yellow(r.short()), line, l.cut(r.Subject, used)); err != nil {
		return err
	}
	indent := strings.Repeat(" ", l.number+2)
	for _, f := range r.Findings {
		fmt.Fprintf(out, "%s%s by %s: %s\n", indent, map[string]string{"hold": "held", "flag": "flagged"}[f.Action], f.Rule, f.Detail)
	}
	if names := namesOf(r.Needs, l.Commits); len(names) > 0 {
		fmt.Fprintf(out, "%sneeds %s\n", indent, strings.Join(names, ", "))
	}
	if r.Replaces != "" {
		fmt.Fprintf(out, "%sin the place of %.12s: git airlock review --since-review %s\n", indent, r.Replaces, r.numeral())
	}
	if n := len(r.of.Unseen()); n > 0 && n < len(r.Files) {
		fmt.Fprintf(out, "%s%d of %s not seen\n", indent, n, words.Count(len(r.Files), "file"))
	}
	if r.Reason != "" {
		fmt.Fprintf(out, "%s%s\n", indent, r.Reason)
	}
	return nil
}

// leastSubject is the number of columns that a subject gets on a narrow terminal.
const leastSubject = 20

// cut shortens a subject to the columns that are left on the terminal.
func (l listing) cut(subject string, used int) string {
	if l.width == 0 {
		return subject
	}
	return words.Shorten(subject, max(l.width-used, leastSubject))
}

// stateWidth is the length of the longest state.
const stateWidth = 8

// painted returns a state in its colour, with spaces up to the width of the longest one.
func painted(p ui.Paint, s review.State) string {
	text := fmt.Sprintf("%-*s", stateWidth, s)
	switch {
	case s == review.StateApproved:
		return p.Green(text)
	case s.Waits():
		return p.Yellow(text)
	}
	return p.Red(text)
}

func (r reviewed) numeral() string {
	if r.Number == 0 {
		return "-"
	}
	return strconv.Itoa(r.Number)
}

func (r reviewed) lines() string     { return fmt.Sprintf("+%d -%d", r.Added, r.Removed) }
func (r reviewed) fileCount() string { return words.Count(len(r.Files), "file") }

// namesOf returns the names of inner commits, for people.
func namesOf(ids []gitops.OID, all []reviewed) []string {
	var names []string
	for _, id := range ids {
		name := fmt.Sprintf("%.12s", id)
		for _, r := range all {
			if r.Inner == id {
				name = r.handle() + " (" + r.Subject + ")"
			}
		}
		names = append(names, name)
	}
	return names
}
