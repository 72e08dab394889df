package secrets

import (
	"regexp"
	"strings"
	"sync"
)

// listFile is an allowlist in the rule file.
type listFile struct {
	Condition   string
	RegexTarget string
	Regexes     []string
	Paths       []string
	StopWords   []string
}

// allowlist describes values that are not secrets. Either one of its parts must match, or all of them.
type allowlist struct {
	all    bool
	target string // the text that regex is matched against: "", "match" or "line"
	regex  func() *regexp.Regexp
	path   func() *regexp.Regexp
	stop   func() *words // nil: there are none
}

func newAllowlist(f listFile) *allowlist {
	a := &allowlist{all: strings.EqualFold(f.Condition, "and"), target: f.RegexTarget, regex: lazily(either(f.Regexes)), path: lazily(either(f.Paths))}
	if len(f.StopWords) > 0 { // a thousand, which most texts do without
		a.stop = sync.OnceValue(func() *words {
			b := newWordsBuilder()
			for _, w := range f.StopWords {
				b.add(w, 0)
			}
			return b.build()
		})
	}
	return a
}

// either joins expressions into one that matches if any of them does.
func either(expressions []string) string {
	if len(expressions) == 0 {
		return ""
	}
	return "(?:" + strings.Join(expressions, "|") + ")"
}

func (a *allowlist) allowsPath(path string) bool { return a.path != nil && a.path().MatchString(path) }

// allows reports whether the list allows a candidate.
func (a *allowlist) allows(c candidate) bool {
	var answers []bool
	if a.regex != nil {
		answers = append(answers, a.regex().Match(a.aim(c)))
	}
	if a.stop != nil {
		answers = append(answers, a.stop().any(c.secret))
	}
	if a.path != nil && a.all {
		answers = append(answers, a.allowsPath(c.path))
	}
	for _, yes := range answers {
		if yes != a.all {
			return yes
		}
	}
	return a.all && len(answers) > 0
}

func (a *allowlist) aim(c candidate) []byte {
	switch a.target {
	case "match":
		return c.match
	case "line":
		return c.line
	}
	return c.secret
}
