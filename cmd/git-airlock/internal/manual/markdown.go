package manual

import (
	"fmt"
	"strings"
)

// markdownText writes a sheet for the web. References to existing pages become links.
func (s *sheet) markdownText(pages map[string]bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s(%s)\n\n%s\n", s.name, s.volume, linked(s.summary, pages))
	if len(s.usage) > 0 {
		fmt.Fprintf(&b, "\n%s\n", indentedLines(s.usage))
	}
	depth := 0
	for i, p := range s.parts {
		switch p.kind {
		case deeper:
			depth++
		case shallow:
			depth--
		case section:
			fmt.Fprintf(&b, "\n## %s\n", sentenceCase(p.text))
		case paragraph:
			fmt.Fprintf(&b, "\n%s\n", linked(p.text, pages))
		case literal:
			fmt.Fprintf(&b, "\n%s\n", indentedLines(strings.Split(p.text, "\n")))
		case bullet, item:
			if i == 0 || s.parts[i-1].kind != p.kind && s.parts[i-1].kind != deeper && s.parts[i-1].kind != shallow {
				b.WriteByte('\n')
			}
			b.WriteString(strings.Repeat("  ", depth) + "- ")
			if p.value != "" {
				p.term += " `" + p.value + "`"
			}
			if p.kind == item {
				b.WriteString(linked(p.term, pages) + ": ")
			}
			b.WriteString(linked(p.text, pages) + "\n")
		}
	}
	return b.String()
}

func indentedLines(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		if !strings.HasPrefix(line, "    ") {
			line = "    " + line
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// sentenceCase converts a title in capitals.
func sentenceCase(title string) string {
	if title != strings.ToUpper(title) || title == "JSON" {
		return title
	}
	return title[:1] + strings.ToLower(title[1:])
}

// linked converts references to links, except in literal words, and escapes the rest.
func linked(text string, pages map[string]bool) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.NewReplacer("<", "&lt;", "_", `\_`).Replace(parts[i])
		parts[i] = reference().ReplaceAllStringFunc(parts[i], func(name string) string {
			if file, _, _ := strings.Cut(name, "("); pages[file] {
				return "[" + name + "](" + file + ".md)"
			}
			return name
		})
	}
	return strings.Join(parts, "`")
}
