package scan

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/git-airlock/git-airlock/gitops"
)

// role is the purpose of a file, derived from its path.
type role int

const (
	ordinary role = iota
	template      // to be copied and filled in
	trial         // tests, examples and documentation
	foreign       // copied from another project
)

// trialFolders contain tests and documentation. Perl and git keep their tests in "t".
var trialFolders = set("t doc docs documentation man manual")

// trialWords are parts of the names of tests and examples.
var trialWords = set("test tests testing tested testdata testdir testcase testcases testutil testutils testsuite tester fixture fixtures " +
	"spec specs mock mocks mocked e2e snapshot snapshots example examples sample samples demo demos dummy fake playground")

// foreignFolders contain third-party code.
var foreignFolders = set("vendor node_modules third_party third-party thirdparty godeps bower_components")

// templateWords and templateEnds are parts of the names of templates. Those of templateEnds count only after a dot.
var (
	templateWords = set("example examples sample samples template")
	templateEnds  = set("tmpl tpl dist default defaults skel")
)

// set returns a function that makes a set of words when it is first called.
func set(words string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool { return gitops.SetOf(strings.Fields(words)...) })
}

// roleOf derives the role from the components of a path.
func roleOf(path string) role {
	components := strings.Split(path, "/")
	folders, name := components[:len(components)-1], components[len(components)-1]
	switch {
	case isTemplate(name):
		return template
	case some(folders, foreignFolders()):
		return foreign
	case some(folders, trialFolders()), slices.ContainsFunc(components, func(c string) bool { return some(wordsOf(c), trialWords()) }):
		return trial
	}
	return ordinary
}

// some reports whether a set has one of the words in lower case.
func some(words []string, set map[string]bool) bool {
	return slices.ContainsFunc(words, func(w string) bool { return set[strings.ToLower(w)] })
}

// isTemplate reports whether a name is a template's: ".env.example", "config.sample.yml", "settings.dist".
func isTemplate(name string) bool {
	lower := strings.ToLower(name)
	for i, part := range strings.Split(lower, ".") {
		if templateEnds()[part] && i > 0 {
			return true
		}
	}
	words := strings.FieldsFunc(lower, func(r rune) bool { return r == '.' || r == '-' || r == '_' })
	return some(words, templateWords())
}

// wordsOf splits a name at characters that are neither letters nor digits, and before a capital letter.
func wordsOf(name string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	small := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			small = false
			continue
		case unicode.IsUpper(r) && small:
			end()
		}
		small = unicode.IsLower(r)
		word.WriteRune(unicode.ToLower(r))
	}
	end()
	return words
}

// severity returns the severity of a match in a file with this role.
func (r role) severity(guess bool) Severity {
	s := High
	if guess {
		s = Medium
	}
	if r != ordinary {
		s = s.lowered()
	}
	return s
}

// reason describes why a match has its severity.
func (r role) reason(m Match) string {
	text := "has the form of a secret"
	switch {
	case m.Guess:
		text = "looks like a secret by the words around"
	case m.Encoded:
		text += ", in Base64"
	}
	return text + r.where()
}

func (r role) where() string {
	switch r {
	case template:
		return ", in a template"
	case trial:
		return ", among tests, examples or documentation"
	case foreign:
		return ", in code of others"
	}
	return ""
}
