// Package cause finds the reason of a failure in the lines that git prints.
package cause

import (
	"slices"
	"strings"
	"syscall"
)

// cut is the length beyond which package gitops cuts a line, and with it the reason.
const cut = 4096

// Ends reports whether a message of git ends with one of the texts, and no later message gives another reason. An agent chooses the names in messages,
// and the lines of a name can look like messages of their own. But a message with a name ends with the true reason, or with a quote.
func Ends(lines []string, texts ...string) bool {
	last := true // no line of the same message follows
	for n, line := range slices.Backward(lines) {
		if last && slices.ContainsFunc(texts, func(text string) bool { return strings.HasSuffix(line, text) }) {
			return true
		}
		if given(line) || len(line) > cut || strings.HasSuffix(line, "'") && slices.ContainsFunc(lines[:n+1], refused) {
			return false
		}
		last = line == "" || slices.ContainsFunc([]string{"error: ", "fatal: ", "warning: "}, func(begin string) bool { return strings.HasPrefix(line, begin) })
	}
	return false
}

// given reports whether a line ends with the text of an error number. These are the same in Go as in the C library, but for the case of the first
// letter; musl says "Filename".
func given(line string) bool {
	text := line[strings.LastIndex(line, ": ")+1:]
	for n := range syscall.Errno(200) {
		if n > 0 && strings.EqualFold(text, " "+n.Error()) {
			return true
		}
	}
	return text == " Filename too long"
}

// refused reports whether a message about a path that git refuses begins. It gives no reason.
func refused(line string) bool {
	return strings.HasPrefix(line, "error: invalid path '") || strings.HasPrefix(line, "fatal: invalid path '") || strings.HasPrefix(line, "error: Invalid path '")
}
