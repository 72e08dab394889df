package secrets

import (
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// TestLongestMatch checks the bound on the bytes of a match of an expression.
func TestLongestMatch(t *testing.T) {
	for expression, want := range map[string]int{
		"":                      0,
		"abc":                   12,
		"[a-z]{3}":              3,
		"(?:[a-z]{2,4}|x)[0-9]": 5,
		`\b[a-z]?$`:             1,
		"a+":                    100,
		"[a-z]{3,}":             100,
		"[a-z]{500}":            100,
		"(?s).":                 4,
	} {
		re, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := widest(re, 100); got != want {
			t.Errorf("%q: %d, want %d", expression, got, want)
		}
	}
}

func TestSpans(t *testing.T) {
	var s spans
	for _, end := range []int{5, 20, 90, 300} {
		s = s.add(span{end, end}, 20)
	}
	if want := (spans{{5, 20}, {90, 90}, {300, 300}}); !slices.Equal(s, want) {
		t.Errorf("%v, want %v", s, want)
	}
	if got, want := s.widened(40, 310), (spans{{0, 130}, {260, 310}}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A secret is found wherever it stands in a long text with many words of its rule.
func TestFindAnywhere(t *testing.T) {
	filler := strings.Repeat("ghp_ and key = none; -----BEGIN \n", 2000)
	for _, rule := range []string{"github-pat", "private-key", "generic-api-key", "aws-access-token"} {
		for _, text := range []string{samples[rule] + "\n" + filler, filler + samples[rule], filler + "\n" + samples[rule] + "\n" + filler} {
			found := rulesIn("a.txt", text)
			want := 1 + strings.Count(text[:strings.Index(text, samples[rule])], "\n")
			if m, ok := found[rule]; !ok || m.Line != want {
				t.Errorf("%s in %d bytes: %+v, want line %d", rule, len(text), found, want)
			}
		}
	}
}

// Rules whose matches have several lines and no bound are known: their words are looked for in all of a text.
func TestAcrossLines(t *testing.T) {
	for _, r := range Default().rules {
		if r.regex == nil || r.width() <= lineReach/2 {
			continue
		}
		re, err := syntax.Parse(r.regex().String(), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if re.Op == syntax.OpConcat { // what follows a token may be the line's end
			re.Sub = re.Sub[:len(re.Sub)-1]
		}
		if hasLineBreak(re) != acrossLines[r.id] {
			t.Errorf("%s: across lines %t, want %t", r.id, acrossLines[r.id], !acrossLines[r.id])
		}
	}
}

func hasLineBreak(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i] <= '\n' && '\n' <= re.Rune[i+1] {
				return true
			}
		}
	case syntax.OpAnyChar:
		return true
	}
	return slices.ContainsFunc(re.Sub, hasLineBreak)
}
