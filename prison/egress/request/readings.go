package request

import (
	"slices"
	"strings"
	"unicode"
)

// Denies reports whether a pattern describes a request as some server may read it. path is the result of [Path]. Denies compares each
// segment as it was sent, without parameters, and without dots and blanks at its end. It ignores the case, and a slash at the end of the
// path.
func (p Pattern) Denies(method, path string) bool {
	return (p.methods == nil || slices.Contains(p.methods, method)) && p.deniesPath(path)
}

// DeniesAll reports whether a pattern, as one that denies, describes each request that another pattern describes. It may miss that for two
// patterns that write the same in different ways.
func (p Pattern) DeniesAll(other Pattern) bool {
	for _, m := range other.methods {
		if p.methods != nil && !slices.Contains(p.methods, m) {
			return false
		}
	}
	path := anyParts
	if other.segments != nil {
		path = strings.Join(other.segments, "/")
	}
	return (p.methods == nil || other.methods != nil) && p.deniesPath("/"+path)
}

// deniesPath is Denies for the path alone. The path may also be that of a pattern: what stands for any characters or any segments is then
// compared as characters that only the same, or more, describes.
func (p Pattern) deniesPath(path string) bool {
	if p.segments == nil {
		return true
	}
	var pattern []string
	for _, s := range p.segments {
		pattern = append(pattern, fold(s))
	}
	begin, _, _ := strings.Cut(path, ";") // some servers end the path at the first semicolon
	return slices.ContainsFunc(slices.Compact([]string{path, begin}), func(path string) bool {
		var segments [][]string
		for s := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
			segments = append(segments, readings(s))
		}
		return matchReadings(pattern, segments) || matchReadings(pattern, otherEnd(segments))
	})
}

// matchReadings compares a pattern with a path whose segments have several readings each.
func matchReadings(pattern []string, path [][]string) bool {
	return matchSegments(pattern, path, func(pattern string, all []string) bool {
		return slices.ContainsFunc(all, func(segment string) bool { return segment != anyParts && matchSegment(pattern, segment) })
	})
}

// otherEnd removes the slash at the end of a path, or adds one. The path of a pattern whose last segment may be empty stays as it is.
func otherEnd(path [][]string) [][]string {
	last := len(path) - 1
	switch end := path[last][0]; {
	case last > 0 && end == "":
		return path[:last]
	case end != "" && strings.Trim(end, anything) == "":
		return path
	}
	return append(slices.Clip(path), []string{""})
}

// readings returns the forms in which servers read a segment of a path. The first is the segment as it is.
func readings(segment string) (all []string) {
	name, _, _ := strings.Cut(segment, ";")
	for _, form := range []string{segment, name} {
		stream, _, _ := strings.Cut(form, ":$") // Windows takes "a::$DATA" for "a"
		all = append(all, fold(form), fold(trim(form)), fold(trim(strings.TrimSuffix(stream, ":"))))
	}
	return slices.Compact(all)
}

// trim removes what Windows ignores in a name: dots and blanks at its end. Other servers remove blanks at its beginning as well.
func trim(segment string) string {
	ignored := func(r rune) bool { return r == '.' || unicode.IsSpace(r) }
	return strings.TrimRightFunc(strings.TrimLeftFunc(segment, unicode.IsSpace), ignored)
}

// fold returns one text for all texts that differ only in case.
func fold(text string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, text)
}
