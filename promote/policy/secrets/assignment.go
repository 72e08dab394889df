package secrets

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// The rules that match the words around a secret look for a name, an assignment and a value. Names like "key" and assignments are in every text,
// but values that could be a secret are rare. So such a rule is tried only around these values.

// assignment is the middle part of such a rule, as gitleaks' generator writes it. The value follows it.
const assignment = `(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}`

// noWord is the expression with which gitleaks allows values that consist of letters alone.
const noWord = `^[a-zA-Z_.-]+$`

// assigned describes the value of a rule, and the position of its name.
type assigned struct {
	run   int   // minimum length of the token
	mixed bool  // the value must not consist of letters alone
	left  int   // maximum number of bytes from the beginning of a match to its value
	after bool  // one of the rule's keywords is in that part
	form  *form // nil if it is not known
	// entropy is the bound that the entropy of a value must exceed, or 0 if the form does not determine the secret.
	entropy float64
}

// assignedOf returns the description of a rule's value, or nil if the rule is of another kind.
func assignedOf(r ruleFile) *assigned {
	name, value, found := strings.Cut(r.Regex, assignment)
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
	a := &assigned{left: widest(before, longestGuess) + longestAssignment, after: hasOneOf(before, r.Keywords), form: formOf(re)}
	if a.run, _ = shortest(re); a.run < shortValue {
		return nil
	}
	if a.after && a.form != nil && a.form.exact && r.SecretGroup <= 1 && before.MaxCap() == 0 {
		a.entropy = r.Entropy
	}
	for _, l := range r.Allowlists {
		for _, expression := range l.Regexes {
			a.mixed = a.mixed || expression == noWord && l.RegexTarget == "" && l.Condition == ""
		}
	}
	return a
}

// hasOneOf reports whether every match of an expression contains one of some words.
func hasOneOf(re *syntax.Regexp, words []string) bool {
	if prefixes, _ := prefixesOf(re); len(prefixes) > 0 && !slices.ContainsFunc(prefixes, func(p prefix) bool { return !p.hasOneOf(words) }) {
		return true
	}
	switch re.Op {
	case syntax.OpConcat, syntax.OpCapture:
		return slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return hasOneOf(sub, words) })
	}
	return false
}

func (p prefix) hasOneOf(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(p.text), strings.ToLower(w)) })
}

// value is the beginning of an assigned value.
type value struct {
	at    int
	run   int
	mixed bool
}

const (
	shortValue = 8 // shorter values are not listed; rules that accept shorter ones do not use the list
	filler     = 5 // bytes between an assignment and its value

	longestAssignment = 4 + filler
	valueLimit        = 4 * runLimit // maximum measured length of a value
	afterValue        = 8            // bytes that a rule may match after the value
)

var (
	assigns = setOf("=>:|,")
	fills   = setOf("`'\"= \t\n\f\r")
	letters = setOf("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.-") // the bytes of noWord
)

// byteSet is a set of bytes.
type byteSet [256]bool

func setOf(bytes string) (s byteSet) {
	for i := range len(bytes) {
		s[bytes[i]] = true
	}
	return s
}

// valuesIn lists the assigned values in some parts of a text.
func valuesIn(text []byte, parts spans) []value {
	var all []value
	for _, p := range parts {
		for i, c := range text[p.from:p.to] {
			if assigns[c] {
				all = valuesBehind(text, p.from+i+1, all)
			}
		}
	}
	return all
}

// valuesBehind adds the values that can belong to an assignment which ends at a place.
func valuesBehind(text []byte, from int, all []value) []value {
	for at := from; at < len(text) && at <= from+filler; at++ {
		if inToken[text[at]] && (at == from || !inToken[text[at-1]]) {
			if v := valueAt(text, at); v.run >= shortValue {
				all = append(all, v)
			}
		}
		if !fills[text[at]] {
			break
		}
	}
	return all
}

func valueAt(text []byte, at int) value {
	v := value{at: at}
	for ; at < len(text) && v.run < valueLimit && inToken[text[at]]; at++ {
		v.mixed = v.mixed || !letters[text[at]]
		v.run++
	}
	return v
}

// candidates returns the parts of a text in which matches can be: around suitable values near one of the rule's keywords.
// hits are the ends of these keywords. width is the maximum distance of a keyword from the end of a match.
func (a *assigned) candidates(text []byte, hits spans, values []value, width int) spans {
	length := len(text)
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
		if !a.fits(text, v, hits) {
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

// fits reports whether a value can be a secret, by its bytes and by the bytes that follow it. hits are the keywords
// of the rule, and the first of them is the one near the value.
func (a *assigned) fits(text []byte, v value, hits spans) bool {
	if a.form == nil || v.run == valueLimit {
		return true
	}
	at := v.at
	for !a.form.inside['='] && at < len(text) && text[at] == '=' { // part of the assignment
		at++
	}
	end := a.form.end(text, at)
	if end < at+a.run {
		return false
	}
	return a.entropy == 0 || a.hides(text, at, end, hits) || entropy(text[at:end]) > a.entropy-1e-9
}

// nextName bounds the distance from a value to the assignment of a name that begins in the value.
const nextName = 32

// hides reports whether another match can begin in a value. Whether that match is found depends on whether this value
// is tried.
func (a *assigned) hides(text []byte, at, end int, hits spans) bool {
	if end < len(text) && text[end] == '\\' || slices.ContainsFunc(text[at:end], func(c byte) bool { return assigns[c] }) {
		return true
	}
	for _, h := range hits {
		if h.from > end+nextName {
			break
		}
		if h.to > at {
			return true
		}
	}
	return false
}
