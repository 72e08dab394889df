package proposal

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var runs = regexp.MustCompile("`+")

// FuzzCode checks that no text ends its code span, its cell or its line.
func FuzzCode(f *testing.F) {
	for _, text := range []string{"", "a", "`", "``a`", "a|b", `a\|b`, " a ", "@user #1", "![x](https://example.com/x.png)", "<img src=x>", "a\nb", "\\`", "```\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		span := Code(text)
		if span == "–" {
			return
		}
		fence := runs.FindString(span)
		inside := strings.TrimSuffix(strings.TrimPrefix(span, fence), fence)
		if strings.ContainsAny(span, "|\n\r") || fence == "" || len(inside)+2*len(fence) != len(span) {
			t.Fatalf("%q became %q", text, span)
		}
		for _, run := range runs.FindAllString(inside, -1) {
			if run == fence {
				t.Fatalf("%q became %q", text, span)
			}
		}
	})
}

// withoutCode removes the code spans of CommonMark: a run of backticks up to the next run of the same length.
func withoutCode(line string) string {
	at := runs.FindAllStringIndex(line, -1)
	for i, open := range at {
		for _, end := range at[i+1:] {
			if end[1]-end[0] == open[1]-open[0] {
				return line[:open[0]] + withoutCode(line[end[1]:])
			}
		}
	}
	return line
}

// TestBody checks that a row has its cells, whatever the agent writes, and that long tables are cut.
func TestBody(t *testing.T) {
	hostile := "x` | @ada fixes #1 <b> ![i](http://e.test/i) \\| \\"
	p := Proposal{Branch: "feat/add-login", Others: 1, Rows: []Row{{Commit: "0123456789abcdef", Subject: hostile, Tree: "exact", Gate: hostile, Reviewers: []string{hostile}, Hosts: []string{hostile}}}}
	for line := range strings.Lines(p.Body()) {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") != 7 {
			t.Errorf("%q", line)
		}
		rest := withoutCode(line)
		if strings.HasPrefix(line, "|") && strings.ContainsAny(rest, "@#<![") {
			t.Errorf("%q leaves %q", line, rest)
		}
	}
	if got := p.Title(); got != "add login" {
		t.Errorf("title %q", got)
	}
	if got := (Proposal{First: "fixes #1 for @ada, see https://e.test <b>"}).Title(); strings.Contains(got, "#1") || strings.Contains(got, "@ada") || strings.Contains(got, "://e") || strings.ContainsAny(got, "<>") {
		t.Errorf("title %q", got)
	}
	for range 3000 {
		p.Rows = append(p.Rows, p.Rows[0])
	}
	body := p.Body()
	if len(body) > 65_000 || !strings.Contains(body, "more than 250 commits") || !strings.Contains(body, fmt.Sprintf("and %d more", 3001-strings.Count(body, "\n| `0123"))) {
		t.Errorf("%d bytes: %.300s", len(body), body)
	}
}
