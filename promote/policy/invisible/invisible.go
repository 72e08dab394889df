// Package invisible finds characters that people cannot see in a text. It leaves out those that belong to the spelling of emoji and of words.
package invisible

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/gitops"
)

// Find returns the name of the first hidden character of a text, and the number of lines before it. Control
// characters that only move down or are not shown count only if controls is set: in files they are too common to mean anything.
func Find(text []byte, controls bool) (line int, char string) {
	before := rune(0)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == '\n':
			line++
		case overwrites(r, text[i+n:]):
			return line, fmt.Sprintf("U+%04X, by which a terminal can hide text", r)
		case r < utf8.RuneSelf && (!controls || r >= ' ' && r != 0x7f || r == '\t' || r == '\r'):
		case r == utf8.RuneError && n <= 1:
		case unicode.Is(unicode.Cc, r) && !controls || unicode.Is(unicode.Co, r): // Co: the icons of fonts
		case (gitops.Hidden(r) || selector(r)) && !wanted(before, r, text[i+n:]):
			return line, fmt.Sprintf("U+%04X", r)
		case r == blackFlag:
			n += len(region().Find(text[i+n:]))
		}
		before = r
		i += n
	}
	return 0, ""
}

// overwrites reports whether a terminal can hide text because of a control character: an escape sequence begins, or the next characters replace
// those before. Git's default pager passes escape sequences on. A carriage return at the end of a line changes nothing.
func overwrites(r rune, after []byte) bool {
	return r == '\x1b' || r == '\u009b' || r == '\b' || r == '\r' && len(after) > 0 && after[0] != '\n' && after[0] != '\r'
}

// wanted reports whether a hidden character belongs to the spelling of its neighbours.
func wanted(before, r rune, after []byte) bool {
	switch {
	case '\u200b' <= r && r <= '\u200d' || r == '\u034f': // joiners, and word separators of scripts without spaces
		next, _ := utf8.DecodeRune(after)
		return joined(before) || joined(next)
	case r == '\u200e' || r == '\u200f' || r == '\u061c': // direction marks
		next, _ := utf8.DecodeRune(after)
		return rightToLeft(before) || rightToLeft(next)
	case r == '\u180e': // sets the last vowel of a Mongolian word apart
		next, _ := utf8.DecodeRune(after)
		return unicode.Is(unicode.Mongolian, before) && joined(before) && unicode.Is(unicode.Mongolian, next) && joined(next)
	case selector(r):
		return selects(before, r, after)
	}
	return false
}

// selects reports whether a variation selector r, which is invisible, follows a character that it can change. No selector follows another one:
// a run of them can spell any text. Where programs drop an emoji, its U+FE0F often remains: before another emoji, and in the links of a table of contents.
func selects(before, r rune, after []byte) bool {
	next, _ := utf8.DecodeRune(after)
	emoji := r == '\ufe0e' || r == '\ufe0f'
	switch {
	case selector(before):
		return false
	case emoji && strings.ContainsRune("#*0123456789", before) && next == '\u20e3':
		return true
	case r == '\ufe0f' && (before == '#' && next == '-' || before == '-' && next == ')' || varies(next) && unicode.Is(unicode.So, next)):
		return true
	}
	return varies(before) || unicode.Is(unicode.Co, before)
}

// blackFlag becomes the flag of a region by the letters of [region] after it.
const blackFlag = '\U0001f3f4'

// region matches the code of a region, such as "gbsct" for Scotland, in invisible letters. They end with a mark.
var region = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\x{e0030}-\x{e0039}\x{e0061}-\x{e007a}]{3,6}\x{e007f}`)
})

// selector reports whether a character selects a variant of the one before it, such as an emoji in place of a symbol of text.
func selector(r rune) bool { return unicode.Is(unicode.Variation_Selector, r) }

// varies reports whether a character is visible and can have variants. Those of the scripts of programs have none.
func varies(r rune) bool {
	return r >= utf8.RuneSelf && r != utf8.RuneError && !gitops.Hidden(r) && unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S) &&
		!unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}

// joined reports whether a character is an emoji or belongs to a script with joined letters, or selects a variant of one.
func joined(r rune) bool {
	return selector(r) || varies(r) && unicode.In(r, unicode.L, unicode.M, unicode.So, unicode.Sk, unicode.Sm)
}

func rightToLeft(r rune) bool {
	return !gitops.Hidden(r) && unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam)
}
