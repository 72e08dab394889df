package execs

import (
	"strings"
	"testing"
)

// TestRules compares calls with rules.
func TestRules(t *testing.T) {
	// Each file without links.
	files := map[string]string{"/bin/curl": "/usr/bin/curl", "./link": "/usr/bin/curl", "./data": "/opt/curl"}
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
		"/bin/curl -s a":         "/usr/bin/curl",
		"./link":                 "/usr/bin/curl",
		"./data":                 "",
		"./marked":               "sha256:" + strings.ToUpper(digest),
	} {
		words := strings.Split(line, " ")
		sum := func() string {
			if strings.HasSuffix(words[0], "marked") {
				return digest
			}
			return ""
		}
		if got := rules.refuses("/workspace", call{path: words[0], argv: words}, func() string { return files[words[0]] }, sum); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	for _, wrong := range []string{"", "*", "**", "sha256:", "sha256:12", "sha256:" + strings.Repeat("x", 64)} {
		if _, err := ParseRules([]string{wrong}); err == nil {
			t.Errorf("%q is a rule", wrong)
		}
	}
}
