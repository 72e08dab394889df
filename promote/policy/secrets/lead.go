package secrets

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// expression is a rule's expression. The expressions from gitleaks' generator begin with [guessPrefix], which takes most of the time: it makes
// Go's regexp keep fifty states for each byte. So compile cuts this prefix off, and all extends each match to the left by hand. The matches are
// the same: the leftmost match of the whole expression ends where the leftmost match of the rest ends, and begins as far before as the prefix
// reaches.
type expression struct {
	*regexp.Regexp
	led   bool // the prefix was cut off
	folds bool // it ignored case, so that it matched two letters beyond ASCII
}

// maxLead is the maximum number of characters that the prefix matches.
const maxLead = 50

// compile compiles an expression when it is first used. An empty expression gives nil.
func compile(text string) func() expression {
	if text == "" {
		return nil
	}
	return sync.OnceValue(func() expression {
		rest, folds := strings.CutPrefix(text, "(?i)")
		rest, led := strings.CutPrefix(rest, guessPrefix)
		if !led {
			return expression{Regexp: regexp.MustCompile(text)}
		}
		if folds {
			rest = "(?i)" + rest
		}
		return expression{regexp.MustCompile(rest), true, folds}
	})
}

// all returns the places of all matches and their groups, as [regexp.Regexp.FindAllSubmatchIndex] does.
func (e expression) all(text []byte) [][]int {
	found := e.FindAllSubmatchIndex(text, -1)
	if !e.led {
		return found
	}
	last := 0
	for _, at := range found {
		for n := 0; n < maxLead && at[0] > last; n++ {
			r, size := utf8.DecodeLastRune(text[last:at[0]])
			if !e.leads(r) {
				break
			}
			at[0] -= size
		}
		last = at[1]
	}
	return found
}

// leads reports whether a character is in the class of the prefix.
func (e expression) leads(r rune) bool {
	const longS, kelvin = '\u017f', '\u212a' // the same as s and k if case is ignored
	switch {
	case r < utf8.RuneSelf:
		return r == '_' || r == '.' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	case r == longS, r == kelvin:
		return e.folds
	}
	return false
}
