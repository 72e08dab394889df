package ignore

import (
	"context"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
)

// Pattern is a line of a .gitignore file, gitignore(5). It is for the user's own patterns. Where git's answer about
// an agent's file decides, use [ShowsFolder], which runs git. TestPatternsAreGits compares both.
type Pattern struct {
	Negative bool // "!": what matches is not ignored
	folder   bool // "/" at the end: only folders match
	anyDepth bool // no "/" within: the last component is compared
	glob     glob
}

// Parse parses one line. ok is false if the line contains no pattern.
func Parse(line string) (p *Pattern, ok bool) {
	text, ok := patternOf(line)
	if !ok {
		return nil, false
	}
	return parsePattern(text)
}

// patternOf returns the pattern in a line.
func patternOf(line string) (text string, ok bool) {
	line, _, _ = strings.Cut(line, "\x00") // git's line ends here
	if line == "" || line[0] == '#' {
		return "", false
	}
	return trimSpaces(line), true
}

// parsePattern parses a pattern (dir.c, parse_path_pattern).
func parsePattern(text string) (p *Pattern, ok bool) {
	p, fixed, wild, ok := splitPattern(text)
	if ok {
		p.glob = append(literals(fixed), parseGlob(wild)...)
	}
	return p, ok
}

// splitPattern parses a pattern without its glob, which consists of a fixed text, and of one with special characters.
func splitPattern(text string) (p *Pattern, fixed, wild string, ok bool) {
	text, _, _ = strings.Cut(text, "\x00")
	p = &Pattern{}
	text, p.Negative = strings.CutPrefix(text, "!")
	text, p.folder = strings.CutSuffix(text, "/")
	p.anyDepth = !strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	if text == "" {
		return nil, "", "", false
	}
	start := 0
	if !p.anyDepth {
		// Git compares the text before the first special character separately, and matches the rest as a pattern of
		// its own: before 2.52, two stars at its start match across slashes, whatever precedes them (dir.c, match_pathname).
		start = strings.IndexAny(text+"*", `*?[\`)
		if start > 0 && strings.HasPrefix(text[start:], "**") && readsBefore() {
			start--
		}
	}
	return p, text[:start], text[start:], true
}

// readsBefore reports whether git also reads the character before two stars, and takes them for one star if it is not a slash.
var readsBefore = sync.OnceValue(func() bool { return gitops.Since(context.Background(), 52) })

// trimSpaces removes trailing spaces that no backslash protects.
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

// Matches reports whether a path, or a folder that it is in, matches.
func (p *Pattern) Matches(path string) bool {
	for end := 0; end < len(path); end++ {
		if path[end] == '/' && p.matchesItself(path[:end], true) {
			return true
		}
	}
	return p.matchesItself(path, false)
}

// matchesItself reports whether the pattern matches a path itself, rather than a folder above it.
func (p *Pattern) matchesItself(path string, folder bool) bool {
	if p.folder && !folder {
		return false
	}
	if p.anyDepth {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	return p.glob.match(path)
}

// Exactly returns the pattern that matches only one path.
func Exactly(path string) string {
	path = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
	if stem := strings.TrimRight(path, " "); stem != path {
		path = stem + strings.Repeat(`\ `, len(path)-len(stem))
	}
	return "/" + path
}

// Patterns are the lines of one .gitignore file. The last pattern that matches a path decides.
type Patterns []*Pattern

// ParseAll parses lines. It returns the first line that is not a pattern.
func ParseAll(lines []string) (patterns Patterns, wrong string, ok bool) {
	for _, line := range lines {
		p, ok := Parse(line)
		if !ok {
			return nil, line, false
		}
		patterns = append(patterns, p)
	}
	return patterns, "", true
}

// Match reports whether a path matches, regardless of the folders above it.
func (p Patterns) Match(path string, folder bool) bool {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].matchesItself(path, folder) {
			return !p[i].Negative
		}
	}
	return false
}

// Within reports whether a file or a folder above it matches. A later pattern cannot exclude a file below such a
// folder.
func (p Patterns) Within(path string) bool {
	for end := 0; len(p) > 0 && end < len(path); end++ {
		if path[end] == '/' && p.Match(path[:end], true) {
			return true
		}
	}
	return p.Match(path, false)
}

// AttributeMatches reports whether the pattern in a line of a .gitattributes file matches a path relative to that
// file. The pattern has the same form as in a .gitignore file, but is not trimmed, and does not apply to paths
// below a folder.
func AttributeMatches(pattern, path string) bool {
	p, ok := parsePattern(pattern)
	return ok && !p.Negative && p.matchesItself(path, false)
}
