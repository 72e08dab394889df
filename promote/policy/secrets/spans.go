package secrets

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// span is a part of a text.
type span struct{ from, to int }

// spans are separate parts of a text, in order.
type spans []span

// add adds a part that ends no earlier than the last one. Parts that are at most gap bytes apart are joined.
func (s spans) add(p span, gap int) spans {
	if n := len(s); n > 0 && p.from <= s[n-1].to+gap {
		s[n-1].from, s[n-1].to = min(s[n-1].from, p.from), max(s[n-1].to, p.to)
		return s
	}
	return append(s, p)
}

// widened returns the parts, each extended by width on both sides.
func (s spans) widened(width, length int) spans {
	var wide spans
	for _, p := range s {
		wide = wide.add(span{max(0, p.from-width), min(length, p.to+width)}, 0)
	}
	return wide
}

// touching removes the parts that neither overlap nor touch one of the given parts.
func (s spans) touching(near []Part) spans {
	return slices.DeleteFunc(s, func(p span) bool {
		for len(near) > 0 && near[0].To < p.from {
			near = near[1:]
		}
		return len(near) == 0 || near[0].From > p.to
	})
}

// Assumed lengths of matches without a bound: a private key may be long, and a password is not.
const (
	longest      = 32 << 10
	longestGuess = 512
)

// widest returns the largest number of bytes that an expression can match, but at most most.
func widest(re *syntax.Regexp, most int) int {
	width := 0
	switch re.Op {
	case syntax.OpLiteral:
		width = utf8.UTFMax * len(re.Rune) // letters of different length can be equal when case is ignored
	case syntax.OpCharClass:
		width = utf8.RuneLen(re.Rune[len(re.Rune)-1])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		width = utf8.UTFMax
	case syntax.OpStar, syntax.OpPlus:
		width = most
	case syntax.OpRepeat:
		if width = most; re.Max >= 0 {
			width = re.Max * widest(re.Sub[0], most)
		}
	case syntax.OpAlternate:
		for _, s := range re.Sub {
			width = max(width, widest(s, most))
		}
	default: // a sequence, a group, or something optional
		for _, s := range re.Sub {
			width += widest(s, most)
		}
	}
	return min(width, most)
}
