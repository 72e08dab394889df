package secrets

import (
	"regexp/syntax"
	"strings"
)

// Most rules match tokens by their first characters: "ghp_", "AKIA", "-----BEGIN". If an expression contains such a prefix,
// it is only tried where a token with that prefix is long enough. A word like "ey" is in every text.

// head is a literal prefix of a match.
type head struct {
	text string // in lower case if fold is set
	fold bool
}

// at reports whether a text begins with the prefix.
func (h head) at(text []byte) bool {
	if len(text) < len(h.text) {
		return false
	}
	for i := range len(h.text) {
		c := text[i]
		if h.fold {
			c = lower(c)
		}
		if c != h.text[i] {
			return false
		}
	}
	return true
}

// headsLimit bounds the number of prefixes of one expression.
const headsLimit = 64

// headsOf lists the prefixes of the matches of an expression, or nil if they can begin with anything. whole reports
// that a match is no longer than its prefix.
func headsOf(re *syntax.Regexp) (heads []head, whole bool) {
	switch re.Op {
	case syntax.OpLiteral:
		h := head{text: string(re.Rune), fold: re.Flags&syntax.FoldCase != 0}
		if h.fold {
			h.text = strings.ToLower(h.text)
		}
		return []head{h}, true
	case syntax.OpCharClass:
		return headsOfClass(re.Rune), true
	case syntax.OpQuest:
		heads, whole = headsOf(re.Sub[0])
		if heads == nil {
			return nil, false
		}
		return append([]head{{}}, heads...), whole
	case syntax.OpCapture:
		return headsOf(re.Sub[0])
	case syntax.OpAlternate:
		whole = true
		for _, sub := range re.Sub {
			more, all := headsOf(sub)
			if more == nil || len(heads)+len(more) > headsLimit {
				return nil, false
			}
			heads, whole = append(heads, more...), whole && all
		}
		return heads, whole
	case syntax.OpConcat:
		return headsInRow(re.Sub)
	}
	return nil, false
}

// headsOfClass returns the characters of a small set as prefixes. The set is given as pairs of first and last
// characters.
func headsOfClass(pairs []rune) (heads []head) {
	for i := 0; i < len(pairs); i += 2 {
		for r := pairs[i]; r <= pairs[i+1]; r++ {
			if len(heads) == 8 {
				return nil
			}
			heads = append(heads, head{text: string(r)})
		}
	}
	return heads
}

// headsInRow returns the prefixes of a concatenation.
func headsInRow(row []*syntax.Regexp) (heads []head, whole bool) {
	heads = []head{{}}
	begun, ended := false, false
	for _, sub := range row {
		if isEmptyWidth(sub) {
			continue
		}
		more, all := headsOf(sub)
		if more == nil || len(heads)*len(more) > headsLimit {
			ended = true
			break
		}
		var joined []head
		for _, h := range heads {
			for _, m := range more {
				joined = append(joined, h.then(m))
			}
		}
		heads, begun = joined, true
		if !all {
			return heads, false
		}
	}
	if !begun {
		return nil, false
	}
	return heads, !ended
}

func (h head) then(next head) head {
	joined := head{text: h.text + next.text, fold: h.fold || next.fold}
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

// isInToken reports whether a byte can be part of a token: it neither quotes nor separates.
func isInToken(c byte) bool { return inToken[c] }

var inToken = func() (in [256]bool) {
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
	for n < len(text) && n < runLimit && isInToken(text[n]) {
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
			if r < 0x80 && !isInToken(byte(r)) {
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
			if !isInToken(byte(r)) {
				return 0, false
			}
		}
	}
	return 1, true
}

// beginning describes the beginning of a rule's matches, and where keywords are in it.
type beginning struct {
	heads []head
	ends  [][]int // for each prefix, the ends of the keywords in it
	run   int     // minimum length of the token
}

// beginningOf returns the beginning of a rule's matches, or nil if it is not known or contains no keyword.
func beginningOf(expression string, keywords []string) *beginning {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil || len(keywords) == 0 {
		return nil
	}
	b := &beginning{}
	b.heads, _ = headsOf(re)
	if len(b.heads) == 0 {
		return nil
	}
	b.run, _ = shortest(re)
	b.run = min(b.run, runLimit)
	for _, h := range b.heads {
		var ends []int
		for _, k := range keywords {
			if i := strings.Index(strings.ToLower(h.text), strings.ToLower(k)); i >= 0 {
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

// before returns the offset of a match that has a keyword which ends at end, or -1.
func (b *beginning) before(text []byte, end int) int {
	for i, h := range b.heads {
		for _, e := range b.ends[i] {
			if from := end - e; from >= 0 && h.at(text[from:]) && tokenRun(text[from:]) >= b.run {
				return from
			}
		}
	}
	return -1
}
