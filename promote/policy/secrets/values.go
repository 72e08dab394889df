package secrets

import (
	"regexp/syntax"
	"strings"
)

// The rules that go by the words around look for a name, an assignment and a value. A name like "key" is in every text, and so
// is something assigned; what could be a secret is rare, and only around it such a rule is tried.

// assignment is how gitleaks' generator writes the middle of such a rule. What follows is the value.
const assignment = `(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}`

// noWord is the list by which gitleaks lets values be that are made of letters alone.
const noWord = `^[a-zA-Z_.-]+$`

// assigned says what the value of a rule is like.
type assigned struct {
	run   int  // bytes of a token, at least
	mixed bool // not of letters alone
}

// assignedOf is nil for a rule that is none of this kind.
func assignedOf(expression string, lists []listFile) *assigned {
	_, value, found := strings.Cut(expression, assignment)
	if !found || strings.Contains(value, assignment) {
		return nil
	}
	re, err := syntax.Parse(value, syntax.Perl|syntax.FoldCase)
	if err != nil {
		return nil
	}
	a := &assigned{}
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

// value is where something that is assigned begins.
type value struct {
	at    int
	run   int
	mixed bool
}

const (
	shortValue = 8 // what is shorter is left out of the list; rules that take shorter ones do without it
	filler     = 5 // bytes between an assignment and its value
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
	for ; at < len(text) && v.run < 4*runLimit && isInToken(text[at]); at++ {
		c := text[at] | 0x20
		v.mixed = v.mixed || !('a' <= c && c <= 'z' || text[at] == '_' || text[at] == '.' || text[at] == '-')
		v.run++
	}
	return v
}

// near keeps of the places where a rule's words are those that a fitting value is near to, and returns the values.
func (a *assigned) near(hits spans, values []value, width int) spans {
	var found spans
	for _, v := range values {
		for len(hits) > 0 && hits[0].to+width < v.at {
			hits = hits[1:]
		}
		if len(hits) == 0 {
			break
		}
		if v.run >= a.run && (v.mixed || !a.mixed) && hits[0].from-width <= v.at {
			found = found.add(span{v.at, v.at}, 0)
		}
	}
	return found
}
