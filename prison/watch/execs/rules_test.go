package execs

import (
	"strings"
	"testing"
)

// TestRules compares calls with rules.
func TestRules(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	rules, err := ParseRules([]string{"/usr/bin/curl", "wget", "git push*", "/workspace/*.sh", "rm -?f /", "sha256:" + strings.ToUpper(digest)})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"/usr/bin/curl a":        "/usr/bin/curl",
		"/usr/bin/../bin/curl":   "/usr/bin/curl",
		"../usr/bin/curl":        "/usr/bin/curl",
		"/opt/curl a":            "",
		"/opt/bin/wget -q":       "wget",
		"./wget":                 "wget",
		"/usr/bin/git push":      "git push*",
		"/usr/bin/git push -f x": "git push*",
		"/usr/bin/git -C . push": "",
		"./deep/er/t.sh":         "/workspace/*.sh",
		"/tmp/t.sh":              "",
		"/bin/rm -rf /":          "rm -?f /",
		"/bin/rm -rf /x":         "",
		"./marked":               "sha256:" + strings.ToUpper(digest),
	} {
		words := strings.Split(line, " ")
		sum := func() string {
			if strings.HasSuffix(words[0], "marked") {
				return digest
			}
			return ""
		}
		if got := rules.refuses("/workspace", call{path: words[0], argv: words}, sum); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	for _, wrong := range []string{"", "*", "**", "sha256:", "sha256:12", "sha256:" + strings.Repeat("x", 64)} {
		if _, err := ParseRules([]string{wrong}); err == nil {
			t.Errorf("%q is a rule", wrong)
		}
	}
}

// FuzzMatches compares patterns with a simple definition.
func FuzzMatches(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 12 || len(text) > 12 {
			t.Skip("the definition takes exponential time")
		}
		if got := matches(pattern, text); got != defined(pattern, text) {
			t.Errorf("matches(%q, %q) = %v", pattern, text, got)
		}
	})
}

func defined(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return defined(pattern[1:], text) || text != "" && defined(pattern, text[1:])
	}
	return text != "" && (pattern[0] == '?' || pattern[0] == text[0]) && defined(pattern[1:], text[1:])
}
