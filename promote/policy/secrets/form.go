package secrets

import (
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// The form of most assigned values in a program already shows that they are not secrets: "key := strings.Cut(line)" has a bracket where the value
// of a secret would end. Comparing a few bytes is enough to see that. An expression would take a microsecond for each byte.

// form describes the bytes of a rule's values, and the bytes that can follow a value. No byte is in both sets, so
// that a value ends at the first byte that is not in the first set.
type form struct {
	inside, behind byteSet // non-ASCII bytes are in a set all together or not at all: no rule distinguishes them
	exact          bool    // the whole value is the secret of a match
}

// formOf returns the form of an expression for a value and the text that follows it, or nil if the form is not known.
func formOf(re *syntax.Regexp) *form {
	if re.Op != syntax.OpConcat || len(re.Sub) < 2 || re.Sub[0].Op != syntax.OpCapture {
		return nil
	}
	f := &form{}
	if !f.inside.addAll(re.Sub[0].Sub[0]) {
		return nil
	}
	behind := &syntax.Regexp{Op: syntax.OpConcat, Sub: re.Sub[1:]}
	if empty, known := f.behind.addFirst(behind); empty || !known {
		return nil
	}
	for c := range f.inside {
		if f.inside[c] && (f.behind[c] || c < utf8.RuneSelf && !inToken[c]) {
			return nil
		}
	}
	f.exact = re.MaxCap() == 1
	return f
}

// addAll adds every byte that can occur in a match of an expression. It reports whether all these bytes are known.
func (s *byteSet) addAll(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			s.add(r, r)
			for f := unicode.SimpleFold(r); re.Flags&syntax.FoldCase != 0 && f != r; f = unicode.SimpleFold(f) {
				s.add(f, f)
			}
		}
	case syntax.OpCharClass:
		s.addClass(re.Rune)
	case syntax.OpConcat, syntax.OpAlternate, syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat, syntax.OpCapture:
		for _, sub := range re.Sub {
			if !s.addAll(sub) {
				return false
			}
		}
	default:
		return isEmptyWidth(re)
	}
	return true
}

func (s *byteSet) addClass(pairs []rune) {
	for i := 0; i < len(pairs); i += 2 {
		s.add(pairs[i], pairs[i+1])
	}
}

// add adds the bytes with which the characters from first to last begin or continue.
func (s *byteSet) add(first, last rune) {
	for r := first; r <= min(last, utf8.RuneSelf-1); r++ {
		s[r] = true
	}
	if last >= utf8.RuneSelf {
		for c := utf8.RuneSelf; c < len(s); c++ {
			s[c] = true
		}
	}
}

// addFirst adds every byte with which a match of an expression can begin. empty reports that a match can be empty
// before the end of the text. known reports whether all these bytes are known.
func (s *byteSet) addFirst(re *syntax.Regexp) (empty, known bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return false, s.addAll(&syntax.Regexp{Op: syntax.OpLiteral, Rune: re.Rune[:1], Flags: re.Flags})
	case syntax.OpCharClass:
		s.addClass(re.Rune)
		return false, true
	case syntax.OpEndText:
		return false, true
	case syntax.OpCapture, syntax.OpPlus:
		return s.addFirst(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		_, known = s.addFirst(re.Sub[0])
		return true, known
	case syntax.OpAlternate:
		known = true
		for _, sub := range re.Sub {
			e, k := s.addFirst(sub)
			empty, known = empty || e, known && k
		}
		return empty, known
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if empty, known = s.addFirst(sub); !empty || !known {
				return empty, known
			}
		}
		return true, true
	case syntax.OpEmptyMatch:
		return true, true
	}
	return false, false
}

// end returns the end of a value that begins at an offset, or -1 if no value begins there.
func (f *form) end(text []byte, at int) int {
	end := at
	for end < len(text) && f.inside[text[end]] {
		end++
	}
	if end < len(text) && !f.behind[text[end]] {
		return -1
	}
	return end
}
