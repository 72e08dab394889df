package gitops

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/words"
)

// escapeLimit is the maximum length of a text that is shown.
const escapeLimit = 4096

// Text is text that an agent may have written: a name, a path, a message, or output. It is escaped wherever it is
// shown, with any verb of package fmt and in JSON. Control, bidirectional and invisible characters, newlines, tabs, and
// bytes that are not UTF-8 become backslash escapes, as do the selectors of emoji (U+FE0E, U+FE0F) where no symbol is.
// Text longer than 4,096 bytes is cut.
type Text string

// String returns the escaped text.
func (t Text) String() string {
	if len(t) > escapeLimit {
		return escape(string(t[:escapeLimit])) + "..."
	}
	return escape(string(t))
}

// Format implements [fmt.Formatter]: every verb formats the escaped text.
func (t Text) Format(state fmt.State, verb rune) {
	fmt.Fprintf(state, fmt.FormatString(state, verb), t.String())
}

// MarshalText implements [encoding.TextMarshaler] with the escaped text.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Raw returns the bytes as they were read. They must not be shown.
func (t Text) Raw() string { return string(t) }

// Escaped returns the escaped forms of some texts. The result is never nil.
func Escaped(texts []string) []string {
	escaped := make([]string, len(texts))
	for i, t := range texts {
		escaped[i] = Text(t).String()
	}
	return escaped
}

// Plain reports whether the text is shown as it is.
func (t Text) Plain() bool { return t.String() == string(t) }

func escape(text string) string {
	i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
	if i < 0 { // most texts are ASCII
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	b.WriteString(text[:i])
	for symbol := false; i < len(text); { // symbol: before text[i], with variants between which U+FE0E and U+FE0F choose
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n' || r == '\t':
			b.WriteString(map[rune]string{'\n': `\n`, '\t': `\t`}[r])
		case r > 0xffff && Hidden(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		case Hidden(r) || unicode.Is(unicode.Variation_Selector, r) && !symbol && !strings.HasPrefix(text[i+n:], "\u20e3"): // of a keycap
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		symbol = n > 1 && unicode.In(r, unicode.S, unicode.P) && !Hidden(r)
		i += n
	}
	return b.String()
}

// Hidden reports whether a character is invisible or moves others: control characters (Unicode Cc), format characters (Cf, including the
// bidirectional ones of the "Trojan Source" report), line and paragraph separators, private-use characters, and letters and marks without a glyph.
// The variation selectors that choose between text and emoji (U+FE0E, U+FE0F) are part of ordinary text after a symbol.
func Hidden(r rune) bool {
	switch r {
	case '\uFE0E', '\uFE0F':
		return false
	case '\u2800': // the empty braille pattern
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Pasteable quotes a word or a [Text] that is shown for pasting into a POSIX shell. Invisible characters become escapes of printf(1), which the
// shell decodes. Since a command substitution drops trailing newlines, a pattern replaces these.
func Pasteable[Word ~string](text Word) string {
	word := string(text)
	visible := strings.TrimRight(word, "\n")
	if escape(word) == word {
		return words.ShellQuote(word)
	}
	var b strings.Builder
	for len(visible) > 0 {
		r, n := utf8.DecodeRuneInString(visible)
		if r == utf8.RuneError && n == 1 || Hidden(r) || unicode.Is(unicode.Variation_Selector, r) || strings.ContainsRune(`'"\`, r) {
			for _, c := range []byte(visible[:n]) {
				fmt.Fprintf(&b, `\0%03o`, c)
			}
		} else {
			b.WriteString(visible[:n])
		}
		visible = visible[n:]
	}
	return `"$(printf %b '` + b.String() + `')"` + strings.Repeat("?", len(word)-len(strings.TrimRight(word, "\n")))
}

// ToText converts the name of a ref or path, which may contain any byte except NUL, to text that JSON can hold. A name in valid UTF-8 stays
// unchanged. Any other name becomes a NUL, followed by one character for each byte, with the number of the byte.
func ToText(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	text := []rune{0}
	for _, b := range []byte(name) {
		text = append(text, rune(b))
	}
	return string(text)
}

// FromText converts a text of ToText back to the name.
func FromText(text string) string {
	if text == "" || text[0] != 0 {
		return text
	}
	var name []byte
	for _, char := range text[1:] {
		name = append(name, byte(char))
	}
	return string(name)
}

// AnyName is a name of any bytes that can be stored as JSON.
type AnyName string

// MarshalText implements [encoding.TextMarshaler].
func (n AnyName) MarshalText() ([]byte, error) { return []byte(ToText(string(n))), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (n *AnyName) UnmarshalText(text []byte) error {
	*n = AnyName(FromText(string(text)))
	return nil
}
