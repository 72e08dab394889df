package secrets

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// The rules that go by the words around look for a name, an assignment and a value. A name like "key" is in every text, and so
// is something assigned; what could be a secret is rare, and only around it such a rule is tried.

// assignment is how gitleaks' generator writes the middle of such a rule. What follows is the value.
const assignment = `(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}`

// noWord is the list by which gitleaks lets values be that are made of letters alone.
const noWord = `^[a-zA-Z_.-]+$`

// assigned says what the value of a rule is like, and where its name is.
type assigned struct {
	run   int  // bytes of a token, at least
	mixed bool // not of letters alone
	left  int  // bytes from the beginning of a match to its value, at most
	after bool // one of the rule's words is in that part
}

// assignedOf is nil for a rule that is none of this kind.
func assignedOf(expression string, keywords []string, lists []listFile) *assigned {
	name, value, found := strings.Cut(expression, assignment)
	if !found || strings.Contains(value, assignment) {
		return nil
	}
	re, err := syntax.Parse(value, syntax.Perl|syntax.FoldCase)
	if err != nil {
		return nil
	}
	before, err := syntax.Parse(name, syntax.Perl)
	if err != nil {
		return nil
	}
	a := &assigned{left: widest(before, longestGuess) + longestAssignment, after: hasOneOf(before, keywords)}
	if a.run, _ = shortest(re); a.run < shortValue {
		return nil
	}
	for _, l := range lists {
		for _, expression := range l.Regexes {
			a.mixed = a.mixed || expression == noWord && l.RegexTarget == "" && l.Condition == ""
		}
	}
	return a
}

// hasOneOf reports whether every match of an expression has one of some words in it.
func hasOneOf(re *syntax.Regexp, words []string) bool {
	if heads, _ := headsOf(re); len(heads) > 0 && !slices.ContainsFunc(heads, func(h head) bool { return !h.hasOneOf(words) }) {
		return true
	}
	switch re.Op {
	case syntax.OpConcat, syntax.OpCapture:
		return slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return hasOneOf(sub, words) })
	}
	return false
}

func (h head) hasOneOf(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(h.text), strings.ToLower(w)) })
}

// value is where something that is assigned begins.
type value struct {
	at    int
	run   int
	mixed bool
}

const (
	shortValue = 8 // what is shorter is left out of the list; rules that take shorter ones do without it
	filler     = 5 // bytes between an assignment and its value

	longestAssignment = 4 + filler
	valueLimit        = 4 * runLimit // how far a value is measured
	afterValue        = 8            // bytes that a rule may want to see behind it
)

func isAssignment(c byte) bool { return c == '=' || c == '>' || c == ':' || c == '|' || c == ',' }

func isFiller(c byte) bool {
	switch c {
	case '`', '\'', '"', '=', ' ', '\t', '\n', '\f', '\r':
		return true
	}
	return false
}

// valuesIn lists the values in a text.
func valuesIn(text []byte) []value {
	var all []value
	for i := 0; i < len(text); i++ {
		if !isAssignment(text[i]) {
			continue
		}
		for j := i + 1; j < len(text) && j <= i+1+filler; j++ {
			if isInToken(text[j]) && (j == i+1 || !isInToken(text[j-1])) {
				if v := valueAt(text, j); v.run >= shortValue {
					all = append(all, v)
				}
			}
			if !isFiller(text[j]) {
				break
			}
		}
	}
	return all
}

func valueAt(text []byte, at int) value {
	v := value{at: at}
	for ; at < len(text) && v.run < valueLimit && isInToken(text[at]); at++ {
		c := text[at] | 0x20
		v.mixed = v.mixed || (c < 'a' || c > 'z') && text[at] != '_' && text[at] != '.' && text[at] != '-'
		v.run++
	}
	return v
}

// around are the parts of a text where matches can be: around fitting values that one of the rule's words, which hits are the
// ends of, is near to. width is how far from a word a match can reach.
func (a *assigned) around(hits spans, values []value, width, length int) spans {
	left, right := width, width
	if a.after {
		left, right = min(width, a.left), 0
	}
	var found spans
	for _, v := range values {
		for len(hits) > 0 && hits[0].to+left < v.at {
			hits = hits[1:]
		}
		if len(hits) == 0 {
			break
		}
		if v.run < a.run || a.mixed && !v.mixed || hits[0].from-right > v.at {
			continue
		}
		end := v.at + v.run + afterValue
		if v.run == valueLimit {
			end += width
		}
		found = found.add(span{max(0, v.at-a.left-utf8.UTFMax), min(length, end)}, 0)
	}
	return found
}
