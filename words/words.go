// Package words formats numbers and texts for messages.
package words

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Count formats a number of things: "1 commit", "2 commits".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Indefinite returns a lower-case noun with its indefinite article.
func Indefinite(noun string) string {
	if noun != "" && strings.Contains("aeiou", noun[:1]) {
		return "an " + noun
	}
	return "a " + noun
}

// Bytes formats a number of bytes for people.
func Bytes(n int64) string {
	for _, unit := range []struct {
		of   int64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if n >= unit.of {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.of), unit.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// Clip returns a text in at most most bytes. A longer text ends in "...", and is not cut inside a character.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(0, most-3)], "") + "..."
}

// ClipValid does what [Clip] does for a text that may not be UTF-8. It replaces invalid bytes.
func ClipValid(text string, most int) string { return Clip(strings.ToValidUTF8(text, "\uFFFD"), most) }

// Shorten returns a text in at most most characters. A longer text ends in "...". If most is below four, there is no limit.
func Shorten(text string, most int) string {
	runes := []rune(text)
	if most < 4 || len(runes) <= most {
		return text
	}
	return string(runes[:most-3]) + "..."
}

// List joins texts with commas. Of more than most texts it has the first ones and the number of the others: "a, b and 3 more".
func List(texts []string, most int) string {
	list := strings.Join(texts[:min(len(texts), most)], ", ")
	if more := len(texts) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// Matches reports whether a pattern matches a whole text. "*" stands for any text and "?" for one byte. The time is at most proportional
// to the product of both lengths.
func Matches(pattern, text string) bool {
	p, t := 0, 0
	star, from := -1, 0 // the index of the last star, and of the text that follows its match
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// OneLine returns the text of an error. The texts of joined errors ([errors.Join]) are in one line, each of them once.
func OneLine(err error) string { return strings.Join(textsOf(err), "; ") }

// textsOf returns the different texts of the errors that are joined in an error.
func textsOf(err error) (texts []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var lines []string
		for _, one := range joined.Unwrap() {
			lines = append(lines, one.Error())
			texts = append(texts, textsOf(one)...)
		}
		if err.Error() == strings.Join(lines, "\n") {
			return Unique(texts)
		}
	}
	if cause := errors.Unwrap(err); cause != nil {
		if step, ok := strings.CutSuffix(err.Error(), cause.Error()); ok {
			return []string{step + OneLine(cause)}
		}
	}
	return []string{err.Error()}
}

// Unique returns texts in their order, each once.
func Unique[T ~string](texts []T) (once []T) {
	seen := map[T]bool{}
	for _, t := range texts {
		if !seen[t] {
			seen[t] = true
			once = append(once, t)
		}
	}
	return once
}

// ColourSequence returns the colour sequence (SGR, ECMA-48) at the start of text. It returns none if the sequence
// can hide the text after it, as "conceal" (8) does.
func ColourSequence(text string) string {
	body, ok := strings.CutPrefix(text, "\x1b[")
	if !ok {
		return ""
	}
	end := strings.IndexFunc(body, func(r rune) bool { return r != ';' && (r < '0' || r > '9') })
	if end < 0 || body[end] != 'm' {
		return ""
	}
	for _, n := range strings.Split(body[:end], ";") {
		if strings.TrimLeft(n, "0") == "8" {
			return ""
		}
	}
	return text[:2+end+1]
}

// ShellQuote quotes a word so that it can be pasted into a POSIX shell, zsh or fish. In quotes, fish takes a backslash before another one or before a
// quote for an escape, so that such a backslash is outside of them. zsh and fish expand a word that begins with "=" or "%".
func ShellQuote(word string) string {
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("@%+=:,./_-", r))
	}
	if word != "" && !strings.ContainsRune("=%", rune(word[0])) && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	quoted := word + "'"
	var b strings.Builder
	for i, c := range []byte(word) {
		switch next := quoted[i+1]; {
		case c == '\'':
			b.WriteString(`'\''`)
		case c == '\\' && (next == '\\' || next == '\''):
			b.WriteString(`'\\'`)
		default:
			b.WriteByte(c)
		}
	}
	return "'" + b.String() + "'"
}

// CutComment cuts the comment off the end of a command that is shown for pasting. An interactive zsh has no comments, and would take the words of
// one for arguments.
func CutComment(line string) (command, comment string) {
	var quote rune
	escaped := false
	for i, r := range line {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case strings.HasPrefix(line[i:], "  # "):
			return line[:i], line[i+len("  # "):]
		}
	}
	return line, ""
}
