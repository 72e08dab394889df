package scan

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
)

// Settings of the user. Each may be set several times.
const (
	AllowKey   = "airlock.scan.allow"   // [RULE:]PATTERN # REASON
	PatternKey = "airlock.scan.pattern" // SEVERITY NAME EXPRESSION
	FileKey    = "airlock.scan.file"    // SEVERITY NAME PATTERN
)

// Settings are the user's additions to a search. The zero Settings allow nothing.
type Settings struct {
	allow    []allowance
	patterns []ownPattern
	files    []ownFile
}

// allowance allows findings of one rule, or of all rules, in the files that a pattern matches.
type allowance struct {
	rule    string // empty means all rules
	pattern *ignore.Pattern
	reason  string
}

// ownPattern is a regular expression of the user, and ownFile a pattern for names of files.
type (
	ownPattern struct {
		severity Severity
		name     string
		regex    *regexp.Regexp
	}
	ownFile struct {
		severity Severity
		name     string
		pattern  *ignore.Pattern
	}
)

// ReadSettings reads the settings of a repository. Git is only run for those that config has.
func ReadSettings(ctx context.Context, repo *gitops.Repository, config gitops.Config) (Settings, error) {
	var s Settings
	for _, read := range []struct {
		key, want string
		add       func(value string) bool
	}{
		{AllowKey, "[RULE:]PATTERN # REASON, with a pattern as in gitignore(5) without \"!\"", s.addAllowance},
		{PatternKey, "high|medium|low NAME EXPRESSION, with an expression as Go reads it", s.addPattern},
		{FileKey, "high|medium|low NAME PATTERN, with a pattern as in gitignore(5) without \"!\"", s.addFile},
	} {
		if !config.Has(read.key) {
			continue
		}
		values, err := repo.Values(ctx, read.key)
		if err != nil {
			return s, err
		}
		for _, value := range values {
			if !read.add(value) {
				return s, &gitops.SettingError{Key: read.key, Value: value, Want: read.want}
			}
		}
	}
	return s, nil
}

var ruleName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:[a-z0-9][a-z0-9-]*|\*):`) })

func (s *Settings) addAllowance(value string) bool {
	i := strings.LastIndex(value, " # ")
	if i < 0 || strings.TrimSpace(value[i+3:]) == "" {
		return false // without a reason, nobody would remember why
	}
	a := allowance{reason: strings.TrimSpace(value[i+3:])}
	text := value[:i]
	if prefix := ruleName().FindString(text); prefix != "" {
		a.rule, text = strings.TrimSuffix(prefix, ":"), text[len(prefix):]
		a.rule = strings.TrimPrefix(a.rule, "*")
	}
	var ok bool
	a.pattern, ok = ignore.Parse(text)
	s.allow = append(s.allow, a)
	return ok && !a.pattern.Negative
}

func (s *Settings) addPattern(value string) bool {
	severity, name, text, ok := parseOwn(value)
	regex, err := regexp.Compile(text)
	if !ok || err != nil {
		return false
	}
	s.patterns = append(s.patterns, ownPattern{severity, name, regex})
	return true
}

func (s *Settings) addFile(value string) bool {
	severity, name, text, ok := parseOwn(value)
	pattern, parsed := ignore.Parse(text)
	if !ok || !parsed || pattern.Negative {
		return false
	}
	s.files = append(s.files, ownFile{severity, name, pattern})
	return true
}

// parseOwn reads "SEVERITY NAME TEXT".
func parseOwn(value string) (Severity, string, string, bool) {
	word, rest, _ := strings.Cut(value, " ")
	name, text, _ := strings.Cut(rest, " ")
	s := slices.Index(severities, word)
	return Severity(s), name, text, s >= 0 && ruleName().MatchString(name+":") && name != "*" && text != ""
}

// allowed returns the user's reason to allow a finding. It is empty if the finding is not allowed.
func (s Settings) allowed(f Finding) string {
	for _, a := range s.allow {
		if (a.rule == "" || a.rule == f.Rule) && a.pattern.Matches(f.Path) {
			return a.reason
		}
	}
	return ""
}

// AllowanceFor returns a value of [AllowKey], without the reason, that allows a finding, but none of another rule or file.
func AllowanceFor(f Finding) string {
	return f.Rule + ":" + ignore.Exactly(f.Path) + " # "
}

// ownLimit is how many matches of a user's expression in one text are reported.
const ownLimit = 100

// custom applies the user's expressions and file patterns.
func (s Settings) custom(path string, text []byte) []Finding {
	var found []Finding
	for _, p := range s.patterns {
		for _, at := range p.regex.FindAllIndex(text, ownLimit) {
			line := 1 + bytes.Count(text[:at[0]], []byte("\n"))
			found = append(found, Finding{Path: path, Line: line, Rule: p.name, Severity: p.severity, Reason: "matches " + PatternKey})
		}
	}
	for _, f := range s.files {
		if f.pattern.Matches(path) {
			found = append(found, Finding{Path: path, Rule: f.name, Severity: f.severity, Reason: "its name matches " + FileKey})
		}
	}
	return found
}
