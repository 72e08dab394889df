package secrets

import (
	"regexp/syntax"
	"strings"
)

// Most rules match tokens by their first characters: "ghp_", "AKIA", "-----BEGIN". If an expression begins with such a prefix, it is only tried
// where the prefix begins a token that is long enough. This matters because a prefix like "ey" is in every text.

// prefix is a literal prefix of a match.
type prefix struct {
	text string // in lower case if fold is set
	fold bool
}

// at reports whether a text begins with the prefix.
func (p prefix) at(text []byte) bool {
	if len(text) < len(p.text) {
		return false
	}
	for i := range len(p.text) {
		c := text[i]
		if p.fold {
			c = lower(c)
		}
		if c != p.text[i] {
			return false
		}
	}
	return true
}

// prefixLimit bounds the number of prefixes of one expression.
const prefixLimit = 64

// prefixesOf lists the prefixes of the matches of an expression, or nil if they can begin with anything. whole reports
// that a match is no longer than its prefix.
func prefixesOf(re *syntax.Regexp) (prefixes []prefix, whole bool) {
	switch re.Op {
	case syntax.OpLiteral:
		p := prefix{text: string(re.Rune), fold: re.Flags&syntax.FoldCase != 0}
		if p.fold {
			p.text = strings.ToLower(p.text)
		}
		return []prefix{p}, true
	case syntax.OpCharClass:
		return classPrefixes(re.Rune), true
	case syntax.OpQuest:
		prefixes, whole = prefixesOf(re.Sub[0])
		if prefixes == nil {
			return nil, false
		}
		return append([]prefix{{}}, prefixes...), whole
	case syntax.OpCapture:
		return prefixesOf(re.Sub[0])
	case syntax.OpAlternate:
		whole = true
		for _, sub := range re.Sub {
			more, all := prefixesOf(sub)
			if more == nil || len(prefixes)+len(more) > prefixLimit {
				return nil, false
			}
			prefixes, whole = append(prefixes, more...), whole && all
		}
		return prefixes, whole
	case syntax.OpConcat:
		return concatPrefixes(re.Sub)
	}
	return nil, false
}

// classPrefixes returns the characters of a small set as prefixes. The set is given as pairs of first and last
// characters.
func classPrefixes(pairs []rune) (prefixes []prefix) {
	for i := 0; i < len(pairs); i += 2 {
		for r := pairs[i]; r <= pairs[i+1]; r++ {
			if len(prefixes) == 8 {
				return nil
			}
			prefixes = append(prefixes, prefix{text: string(r)})
		}
	}
	return prefixes
}

func concatPrefixes(row []*syntax.Regexp) (prefixes []prefix, whole bool) {
	prefixes = []prefix{{}}
	begun, ended := false, false
	for _, sub := range row {
		if isEmptyWidth(sub) {
			continue
		}
		more, all := prefixesOf(sub)
		if more == nil || len(prefixes)*len(more) > prefixLimit {
			ended = true
			break
		}
		var joined []prefix
		for _, p := range prefixes {
			for _, m := range more {
				joined = append(joined, p.then(m))
			}
		}
		prefixes, begun = joined, true
		if !all {
			return prefixes, false
		}
	}
	if !begun {
		return nil, false
	}
	return prefixes, !ended
}

func (p prefix) then(next prefix) prefix {
	joined := prefix{text: p.text + next.text, fold: p.fold || next.fold}
	if joined.fold {
		joined.text = strings.ToLower(joined.text)
	}
	return joined
}

func isEmptyWidth(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return false
}

// inToken has the bytes that can be part of a token: those that neither quote nor separate.
var inToken = func() (in byteSet) {
	for c := range in {
		in[c] = c > ' ' && c != 0x7f && strings.IndexByte("\"'`()[]{}<>,;", byte(c)) < 0
	}
	return in
}()

// runLimit bounds the measured length of a token.
const runLimit = 64

// tokenRun counts the bytes of the token at the beginning of a text.
func tokenRun(text []byte) int {
	n := 0
	for n < len(text) && n < runLimit && inToken[text[n]] {
		n++
	}
	return n
}

// shortest returns the number of token bytes with which every match of an expression begins. whole reports that a
// match has no other bytes.
func shortest(re *syntax.Regexp) (n int, whole bool) {
	switch re.Op {
	case syntax.OpLiteral:
		for i, r := range re.Rune {
			if r < 0x80 && !inToken[r] {
				return i, false
			}
		}
		return len(re.Rune), true
	case syntax.OpCharClass:
		return classRun(re.Rune)
	case syntax.OpCapture:
		return shortest(re.Sub[0])
	case syntax.OpConcat:
		whole = true
		for _, sub := range re.Sub {
			var more int
			more, whole = shortest(sub)
			if n += more; !whole {
				break
			}
		}
		return n, whole
	case syntax.OpAlternate:
		n, whole = runLimit, true
		for _, sub := range re.Sub {
			one, all := shortest(sub)
			n, whole = min(n, one), whole && all
		}
		return n, whole
	case syntax.OpPlus:
		return shortest(re.Sub[0])
	case syntax.OpRepeat:
		n, whole = shortest(re.Sub[0])
		if whole || re.Min == 0 {
			n *= re.Min
		}
		return min(n, runLimit), whole
	case syntax.OpStar, syntax.OpQuest:
		_, whole = shortest(re.Sub[0])
		return 0, whole
	}
	return 0, isEmptyWidth(re)
}

// classRun is shortest for a set of characters, given as pairs of first and last characters.
func classRun(pairs []rune) (n int, whole bool) {
	for i := 0; i < len(pairs); i += 2 {
		for r := pairs[i]; r <= min(pairs[i+1], 0x7f); r++ {
			if !inToken[r] {
				return 0, false
			}
		}
	}
	return 1, true
}

// matchStart describes the beginning of a rule's matches, and where keywords are in it.
type matchStart struct {
	prefixes []prefix
	ends     [][]int // for each prefix, the ends of the keywords in it
	run      int     // minimum length of the token
}

// matchStartOf returns the beginning of a rule's matches, or nil if it is not known or contains no keyword.
func matchStartOf(expression string, keywords []string) *matchStart {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil || len(keywords) == 0 {
		return nil
	}
	b := &matchStart{}
	b.prefixes, _ = prefixesOf(re)
	if len(b.prefixes) == 0 {
		return nil
	}
	b.run, _ = shortest(re)
	b.run = min(b.run, runLimit)
	for _, p := range b.prefixes {
		var ends []int
		for _, k := range keywords {
			if i := strings.Index(strings.ToLower(p.text), strings.ToLower(k)); i >= 0 {
				ends = append(ends, i+len(k))
			}
		}
		if ends == nil {
			return nil
		}
		b.ends = append(b.ends, ends)
	}
	return b
}

// matchBefore returns the offset of a match that has a keyword which ends at end, or -1.
func (b *matchStart) matchBefore(text []byte, end int) int {
	for i, p := range b.prefixes {
		for _, e := range b.ends[i] {
			if from := end - e; from >= 0 && p.at(text[from:]) && tokenRun(text[from:]) >= b.run {
				return from
			}
		}
	}
	return -1
}
