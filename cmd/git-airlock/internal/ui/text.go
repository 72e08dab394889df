package ui

import (
	"regexp"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
)

// controlSequence matches the control sequences of terminals, see console_codes(4): CSI, OSC and other strings, and
// short sequences.
var controlSequence = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\a\x1b]*(\a|\x1b\\\\)|\x1b[ -/]*[0-~]")
})

// PlainText returns terminal output as plain text. Of a line that was overwritten, it keeps the last version.
func PlainText(shown string) string {
	var b strings.Builder
	shown = controlSequence().ReplaceAllString(shown, "")
	for line := range strings.Lines(shown) {
		line = strings.TrimRight(line, "\r\n")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		b.WriteString(strings.Join(gitops.Escaped(strings.Split(line, "\t")), "\t") + "\n")
	}
	return b.String()
}
