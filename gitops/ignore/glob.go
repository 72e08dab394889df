package ignore

import "strings"

// glob is a pattern as in git: "*", "?" and "[...]" match within a component, and "**" between slashes matches any
// number of components. It is matched without backtracking, in time proportional to the pattern's length times the
// text's, because an agent may have written it.
type glob []globToken

type globKind byte

const (
	literal globKind = iota // one byte
	class                   // one byte of a set, never a slash
	star                    // any bytes but slashes
	deep                    // any bytes
	dirs                    // nothing, or whole components up to a slash
	inDirs                  // the inside of dirs, not a token of its own
	nowhere                 // matches nothing: a set without an end
)

type globToken struct {
	kind globKind
	char byte
	set  *byteSet
}

// literals returns a glob that matches only one text.
func literals(text string) (g glob) {
	for i := range len(text) {
		g = append(g, globToken{kind: literal, char: text[i]})
	}
	return g
}

func parseGlob(text string) glob {
	var g glob
	for i := 0; i < len(text); {
		t, n := parseGlobToken(text, i)
		if n == 0 {
			return glob{{kind: nowhere}}
		}
		g = append(g, t)
		if t.kind == dirs {
			g = append(g, globToken{kind: inDirs})
		}
		i += n
	}
	return g
}

// parseGlobToken parses the token at i. It returns the token's length, or 0 if the glob can match nothing.
func parseGlobToken(text string, i int) (globToken, int) {
	switch c := text[i]; c {
	case '*':
		return parseStars(text, i)
	case '?':
		return globToken{kind: class, set: anyByte}, 1
	case '[':
		set, n := parseSet(text[i:])
		return globToken{kind: class, set: set}, n
	case '\\':
		if i+1 == len(text) {
			return globToken{}, 0
		}
		return globToken{kind: literal, char: text[i+1]}, 2
	default:
		return globToken{kind: literal, char: c}, 1
	}
}

// parseStars parses a run of stars. Two or more that are a whole component match across slashes.
func parseStars(text string, i int) (globToken, int) {
	end := i
	for end < len(text) && text[end] == '*' {
		end++
	}
	whole := end > i+1 && (i == 0 || text[i-1] == '/')
	switch {
	case whole && (end == len(text) || strings.HasPrefix(text[end:], `\/`)):
		return globToken{kind: deep}, end - i
	case whole && text[end] == '/':
		return globToken{kind: dirs}, end - i + 1
	}
	return globToken{kind: star}, end - i
}

// match reports whether the whole text matches.
func (g glob) match(text string) bool {
	now, next := make([]bool, len(g)+1), make([]bool, len(g)+1)
	now[0] = true
	g.skip(now)
	for i := range len(text) {
		clear(next)
		alive := false
		for n, on := range now[:len(g)] {
			if !on {
				continue
			}
			if to, ok := g[n].step(n, text[i]); ok {
				next[to], alive = true, true
			}
		}
		if !alive {
			return false
		}
		now, next = next, now
		g.skip(now)
	}
	return now[len(g)]
}

// skip adds the states that can be reached without reading a byte.
func (g glob) skip(states []bool) {
	for n, t := range g {
		if !states[n] {
			continue
		}
		switch t.kind {
		case star, deep:
			states[n+1] = true
		case dirs:
			states[n+2] = true
		}
	}
}

// step reads one byte in state n and returns the state after it.
func (t globToken) step(n int, c byte) (int, bool) {
	switch t.kind {
	case literal:
		return n + 1, c == t.char
	case class:
		return n + 1, t.set[c]
	case star:
		return n, c != '/'
	case deep:
		return n, true
	case dirs:
		if c == '/' {
			return n, true
		}
		return n + 1, true
	case inDirs:
		if c == '/' {
			return n - 1, true
		}
		return n, true
	}
	return 0, false
}
