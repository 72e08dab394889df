package secrets

import (
	"regexp/syntax"
	"strings"
)

// Most rules know tokens by how they begin: "ghp_", "AKIA", "-----BEGIN". Where an expression says so itself, it need
// only be tried where a token begins so and is long enough; a word like "ey" is in every text.

// head is how a match can begin.
type head struct {
	text string // in lower case if folded
	fold bool
}

// at reports whether a text goes on like this.
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

// headsLimit bounds the heads of one expression.
const headsLimit = 64

// headsOf lists how the matches of an expression can begin, nil if they can begin with anything. whole tells that a
// match is no longer than that.
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

// headsOfClass are the characters of a small set, given as pairs of first and last.
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

// headsInRow is headsOf for expressions that follow each other.
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

// isInToken tells the bytes that tokens are made of: all that neither quotes nor separates.
func isInToken(c byte) bool {
	return c > ' ' && c != 0x7f && strings.IndexByte("\"'`()[]{}<>,;", c) < 0
}

// runLimit bounds how far a token is measured.
const runLimit = 64

// tokenRun counts the bytes of a token at the start of a text.
func tokenRun(text []byte) int {
	n := 0
	for n < len(text) && n < runLimit && isInToken(text[n]) {
		n++
	}
	return n
}

// shortest is the number of bytes of a token that every match of an expression begins with. whole tells that a match
// has no others.
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

// classRun is shortest for a set of characters, given as pairs of first and last.
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

// beginning is how the matches of a rule begin, and where in that its keywords are.
type beginning struct {
	heads []head
	ends  [][]int // for each head, where keywords in it end
	run   int     // bytes of a token, at least
}

// beginningOf is nil for a rule that does not say how its matches begin, or not with one of its keywords.
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

// before finds where a match begins, one of whose keywords ends at a place; -1 if there is none.
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
