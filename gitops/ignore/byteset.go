package ignore

import "strings"

// byteSet is the set of bytes that "[...]" matches in a glob.
type byteSet [256]bool

// anyByte is the set of bytes that "?" matches.
var anyByte = func() *byteSet {
	var set byteSet
	set.addIf(func(c byte) bool { return c != '/' })
	return &set
}()

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isGraph(c byte) bool { return ' ' < c && c < 0x7f }

// posix are the named sets.
var posix = map[string]func(c byte) bool{
	"alnum":  func(c byte) bool { return isAlpha(c) || isDigit(c) },
	"alpha":  isAlpha,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"digit":  isDigit,
	"graph":  isGraph,
	"lower":  func(c byte) bool { return isAlpha(c) && c&0x20 != 0 },
	"print":  func(c byte) bool { return c == ' ' || isGraph(c) },
	"punct":  func(c byte) bool { return isGraph(c) && !isAlpha(c) && !isDigit(c) },
	"space":  func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }, // as in git (ctype.c)
	"upper":  func(c byte) bool { return isAlpha(c) && c&0x20 == 0 },
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func (s *byteSet) addIf(in func(c byte) bool) {
	for c := range s {
		s[c] = s[c] || in(byte(c))
	}
}

// parseSet parses "[...]" at the start of a text. It returns the set and its length, or 0 if the set has no end.
func parseSet(text string) (*byteSet, int) {
	var set byteSet
	i, invert := 1, false
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		i, invert = i+1, true
	}
	previous := -1 // where a range may begin
	for first := true; i < len(text); first = false {
		if text[i] == ']' && !first {
			for c := range set {
				set[c] = set[c] != invert && c != '/'
			}
			return &set, i + 1
		}
		var n int
		if n, previous = set.add(text[i:], previous); n == 0 {
			return nil, 0
		}
		i += n
	}
	return nil, 0
}

// add parses one member. It returns the length, or 0 if the set is invalid, and the byte at which a range may
// begin, or -1 if none may.
func (s *byteSet) add(text string, previous int) (n, from int) {
	switch {
	case text[0] == '\\':
		if len(text) < 2 {
			return 0, -1
		}
		s[text[1]] = true
		return 2, int(text[1])
	case text[0] == '-' && previous > 0 && len(text) > 1 && text[1] != ']':
		return s.addRange(text, previous), -1
	case strings.HasPrefix(text, "[:"):
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return 0, -1
		}
		if end > 2 && text[end-1] == ':' {
			in, known := posix[text[2:end-1]]
			if !known {
				return 0, -1
			}
			s.addIf(in)
			return end + 1, -1
		}
	}
	s[text[0]] = true
	return 1, int(text[0])
}

// addRange parses "-" and the end of a range.
func (s *byteSet) addRange(text string, from int) (n int) {
	to, n := text[1], 2
	if to == '\\' {
		if len(text) < 3 {
			return 0
		}
		to, n = text[2], 3
	}
	s.addIf(func(c byte) bool { return from <= int(c) && c <= to })
	return n
}
