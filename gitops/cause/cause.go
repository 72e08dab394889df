// Package cause finds the reason of a failure in the lines that git prints.
package cause

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Ends reports whether a message of git ends with one of the texts, and no later message gives another reason. An agent chooses the names in messages,
// and the lines of a name can look like messages of their own. But a message with a name ends with the true reason, or with a quote, or git cuts it.
func Ends(lines []string, texts ...string) bool {
	last := true // no line of the same message follows
	for n, line := range slices.Backward(lines) {
		if cut(lines[:n+1]) {
			return false
		}
		if last && slices.ContainsFunc(texts, func(text string) bool { return strings.HasSuffix(line, text) }) {
			return true
		}
		if given(line) || strings.HasSuffix(line, "'") && slices.ContainsFunc(lines[:n+1], refused) {
			return false
		}
		last = line == "" || slices.ContainsFunc([]string{"error: ", "fatal: ", "warning: "}, func(begin string) bool { return strings.HasPrefix(line, begin) })
	}
	return false
}

// messageLimit is the number of bytes beyond which git cuts a message (vreportf in usage.c), and with it the reason.
const messageLimit = 4095

// escapes matches what can be an escaped character of a line, of at least one byte.
var escapes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|t)`) })

// cut reports whether the last lines can be a message that git has cut. The lines are escaped, so that their length is not certain.
func cut(lines []string) bool {
	least, most := -1, -1 // the last newline does not count
	for _, line := range slices.Backward(lines) {
		least, most = least+len(escapes().ReplaceAllLiteralString(line, "x"))+1, most+len(line)+1
		if least > messageLimit {
			break
		}
		if most >= messageLimit {
			return true
		}
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
