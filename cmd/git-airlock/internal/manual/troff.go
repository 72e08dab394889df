package manual

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// reference matches the name of a page: git-airlock-start(1).
var reference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b((?:git-)?[a-z][a-z-]*)\(([1578])\)`) })

// troff writes a sheet for man(1), see man(7).
func (s *sheet) troff(source, date string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s %s %s \"%s\" \"Git Manual\"\n", Literal(strings.ToUpper(s.name)), s.volume, cmp.Or(date, `""`), Literal(source))
	fmt.Fprint(&b, ".nh\n.ad l\n") // no hyphenation, because it would break literal words
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", Literal(s.name), prose(s.summary))
	if len(s.usage) > 0 {
		fmt.Fprintf(&b, ".SH SYNOPSIS\n%s", asLines(s.usage))
	}
	for i, p := range s.parts {
		after := section
		if i > 0 {
			after = s.parts[i-1].kind
		}
		switch p.kind {
		case section:
			fmt.Fprintf(&b, ".SH %s\n", prose(strings.ToUpper(p.text)))
		case paragraph, literal:
			if after != section {
				b.WriteString(".PP\n")
			}
			if p.kind == literal {
				b.WriteString(asLines(strings.Split(p.text, "\n")))
			} else {
				b.WriteString(prose(p.text) + "\n")
			}
		case bullet:
			fmt.Fprintf(&b, ".IP \\(bu 2\n%s\n", prose(p.text))
		case item:
			term := prose(p.term)
			if p.value != "" {
				term += ` \fI` + Literal(p.value) + `\fR`
			}
			fmt.Fprintf(&b, ".TP\n%s\n%s\n", term, prose(p.text))
		case deeper:
			b.WriteString(".RS\n")
		case shallow:
			b.WriteString(".RE\n")
		}
	}
	return b.String()
}

// asLines prints lines without formatting.
func asLines(lines []string) string {
	var b strings.Builder
	b.WriteString(".nf\n")
	for _, line := range lines {
		b.WriteString(Literal(line) + "\n")
	}
	b.WriteString(".fi\n")
	return b.String()
}

// asTyped escapes the characters that troff would replace (groff_char(7)).
var asTyped = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

// Literal escapes text that must be shown unchanged.
func Literal(text string) string {
	text = asTyped.Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text // otherwise troff reads the line as a request
	}
	return text
}

// prose formats sentences, with words between backticks as literal words.
func prose(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			part = `\fB` + strings.TrimPrefix(Literal(part), `\&`) + `\fR`
		} else {
			part = references(asTyped.Replace(part))
		}
		b.WriteString(part)
	}
	if text := b.String(); strings.HasPrefix(text, ".") {
		return `\&` + text
	}
	return b.String()
}

// escapedReference is a [reference] after asTyped.
var escapedReference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b((?:[a-z]+\\-)*[a-z]+)\(([1578])\)`) })

// references formats the names of pages as man(1) does.
func references(text string) string { return escapedReference().ReplaceAllString(text, `\fB$1\fR($2)`) }
