package secrets

import (
	"regexp"
	"strings"
)

// listFile is an allowlist in the file.
type listFile struct {
	Condition   string
	RegexTarget string
	Regexes     []string
	Paths       []string
	StopWords   []string
}

// allowlist says what is no secret. One of its parts is enough, or all that it has are needed.
type allowlist struct {
	all    bool
	target string // what the expressions are held against: "", "match" or "line"
	regex  func() *regexp.Regexp
	path   func() *regexp.Regexp
	stop   *words
}

func newAllowlist(f listFile) *allowlist {
	a := &allowlist{all: strings.EqualFold(f.Condition, "and"), target: f.RegexTarget, regex: lazily(either(f.Regexes)), path: lazily(either(f.Paths))}
	if len(f.StopWords) > 0 {
		b := newWordsBuilder()
		for _, w := range f.StopWords {
			b.add(w, 0)
		}
		a.stop = b.build()
	}
	return a
}

// either joins expressions to one that matches where one of them does.
func either(expressions []string) string {
	if len(expressions) == 0 {
		return ""
	}
	return "(?:" + strings.Join(expressions, "|") + ")"
}

func (a *allowlist) allowsPath(path string) bool { return a.path != nil && a.path().MatchString(path) }

// allows reports whether a candidate is excused.
func (a *allowlist) allows(c candidate) bool {
	var answers []bool
	if a.regex != nil {
		answers = append(answers, a.regex().Match(a.aim(c)))
	}
	if a.stop != nil {
		answers = append(answers, a.stop.any(c.secret))
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
