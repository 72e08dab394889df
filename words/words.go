// Package words formats numbers and texts for messages.
package words

import (
	"fmt"
	"strings"
)

// Count formats a number of things: "1 commit", "2 commits".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Clip returns a text in at most that many bytes. A longer text ends in "...", and is not cut inside a character.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(0, most-3)], "") + "..."
}

// ClipValid is [Clip] for a text of any bytes. It replaces what is not UTF-8.
func ClipValid(text string, most int) string { return Clip(strings.ToValidUTF8(text, "\uFFFD"), most) }

// Shorten returns a text in at most that many characters. A longer text ends in "...". A limit below four is no limit.
func Shorten(text string, most int) string {
	runes := []rune(text)
	if most < 4 || len(runes) <= most {
		return text
	}
	return string(runes[:most-3]) + "..."
}
