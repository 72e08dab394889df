package gitops

import "strings"

// Pattern is a line of a .gitignore file, gitignore(5). It is for patterns of the user's own: where git's answer about an agent's
// file decides, git is asked ([ShowsFolder]). TestPatternsAreGits compares both.
type Pattern struct {
	Negative bool // "!": what matches is not ignored
	folder   bool // "/" at the end: only folders match
	anyDepth bool // no "/" within: the last component is compared
	glob     glob
}

// ParsePattern reads one line; ok is false if there is no pattern on it.
func ParsePattern(line string) (p *Pattern, ok bool) {
	line, _, _ = strings.Cut(line, "\x00") // where git's line ends
	if line == "" || line[0] == '#' {
		return nil, false
	}
	return parsePattern(trimSpaces(line))
}

// parsePattern reads a pattern (dir.c, parse_path_pattern).
func parsePattern(text string) (p *Pattern, ok bool) {
	text, _, _ = strings.Cut(text, "\x00")
	p = &Pattern{}
	text, p.Negative = strings.CutPrefix(text, "!")
	text, p.folder = strings.CutSuffix(text, "/")
	p.anyDepth = !strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	if text == "" {
		return nil, false
	}
	start := 0
	if !p.anyDepth {
		// Git compares what comes before the first special character apart, and matches the rest as a pattern of its own:
		// two stars at its start cross slashes, whatever comes before them (dir.c, match_pathname).
		start = strings.IndexAny(text+"*", `*?[\`)
	}
	p.glob = append(literals(text[:start]), parseGlob(text[start:])...)
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

// Matches reports whether a path, or a folder that it is in, matches.
func (p *Pattern) Matches(path string) bool {
	for end := 0; end < len(path); end++ {
		if path[end] == '/' && p.Says(path[:end], true) {
			return true
		}
	}
	return p.Says(path, false)
}

// Says reports whether the pattern matches one path, not a folder that it is in.
func (p *Pattern) Says(path string, folder bool) bool {
	if p.folder && !folder {
		return false
	}
	if p.anyDepth {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	return p.glob.match(path)
}

// PatternOf is the pattern that matches one path and nothing else.
func PatternOf(path string) string {
	path = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
	if stem := strings.TrimRight(path, " "); stem != path {
		path = stem + strings.Repeat(`\ `, len(path)-len(stem))
	}
	return "/" + path
}

// Patterns are lines of one .gitignore file; the last that says something about a path decides.
type Patterns []*Pattern

// ParsePatterns reads lines; it returns the first that is none.
func ParsePatterns(lines []string) (patterns Patterns, wrong string, ok bool) {
	for _, line := range lines {
		p, ok := ParsePattern(line)
		if !ok {
			return nil, line, false
		}
		patterns = append(patterns, p)
	}
	return patterns, "", true
}

// Match reports whether one path matches, whatever is said about the folders that it is in.
func (p Patterns) Match(path string, folder bool) bool {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].Says(path, folder) {
			return !p[i].Negative
		}
	}
	return false
}

// Within reports whether a file matches, or a folder that it is in: nothing below such a folder comes back.
func (p Patterns) Within(path string) bool {
	for end := 0; len(p) > 0 && end < len(path); end++ {
		if path[end] == '/' && p.Match(path[:end], true) {
			return true
		}
	}
	return p.Match(path, false)
}

// AttributeMatches reports whether the pattern of a line of a .gitattributes file matches a path from there. It has the form of
// one in a .gitignore file, but nothing in it is trimmed, and it says nothing about what is below a folder.
func AttributeMatches(pattern, path string) bool {
	p, ok := parsePattern(pattern)
	return ok && !p.Negative && p.Says(path, false)
}
