package policy

import (
	"bytes"
	"strings"
)

// pattern is a line of a .gitignore file, gitignore(5).
type pattern struct {
	negative bool // "!": what matches is not ignored
	folder   bool // "/" at the end: only folders match
	anyDepth bool // no "/" within: the last component is compared
	glob     glob
}

// parsePattern reads one line; ok is false if there is no pattern on it.
func parsePattern(line string) (p *pattern, ok bool) {
	line, _, _ = strings.Cut(line, "\x00") // where git's line ends
	if line == "" || line[0] == '#' {
		return nil, false
	}
	text := trimSpaces(line)
	p = &pattern{}
	text, p.negative = strings.CutPrefix(text, "!")
	text, p.folder = strings.CutSuffix(text, "/")
	p.anyDepth = !strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	if text == "" {
		return nil, false
	}
	p.glob = parseGlob(text)
	return p, true
}

// trimSpaces takes off the spaces at the end that no backslash protects.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

// matches tells whether a path, or a folder that it is in, matches.
func (p *pattern) matches(path string) bool {
	for end := 0; end < len(path); end++ {
		if path[end] == '/' && p.one(path[:end], true, false) {
			return true
		}
	}
	return p.one(path, false, false)
}

// one tells whether the pattern says something about one path.
func (p *pattern) one(path string, folder, folded bool) bool {
	if p.folder && !folder {
		return false
	}
	if p.anyDepth {
		path = base(path)
	}
	return p.glob.match(path, folded)
}

// patternLimit bounds the bytes of one pattern that is looked at; git has no such limit, paths have.
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
			continue
		}
		if p, ok := parsePattern(string(text)); ok && p.one(folder, true, folded) {
			line, negative = n, p.negative
		}
	}
	return line, negative
}
