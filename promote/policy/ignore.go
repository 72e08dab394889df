package policy

import (
	"bytes"

	"github.com/git-airlock/git-airlock/gitops"
)

// patternLimit bounds the bytes of one pattern that is looked at. Git has no such limit: one that is longer and negative is
// taken to be about the folder.
const patternLimit = 8 << 10

// ignoring finds the last line of a .gitignore file at the top that decides about a folder beside it.
// negative tells that it is not ignored; line is 0 if none does.
func ignoring(content []byte, folder string, folded bool) (line int, negative bool) {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	n := 0
	for text := range bytes.Lines(content) {
		n++
		text = bytes.TrimSuffix(text, []byte("\n"))
		text = bytes.TrimSuffix(text, []byte("\r"))
		if len(text) > patternLimit {
			if text[0] == '!' {
				line, negative = n, true
			}
			continue
		}
		if p, ok := gitops.ParsePattern(string(text)); ok && p.Says(folder, true, folded) {
			line, negative = n, p.Negative
		}
	}
	return line, negative
}
