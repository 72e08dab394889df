package sets

import (
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress"
)

// TestSets checks each set: the hosts that its programs need, and hosts that it must not open. A set without a row fails.
func TestSets(t *testing.T) {
	want := map[string]struct{ open, closed []string }{
		"@npm":         {[]string{"registry.npmjs.org"}, []string{"www.npmjs.com", "registry.npmjs.org.evil.test"}},
		"@pypi":        {[]string{"pypi.org", "files.pythonhosted.org"}, []string{"upload.pypi.org", "test.pypi.org"}},
		"@go":          {[]string{"proxy.golang.org", "sum.golang.org"}, []string{"storage.googleapis.com", "go.dev"}},
		"@crates":      {[]string{"index.crates.io", "static.crates.io", "crates.io"}, []string{"github.com"}},
		"@debian":      {[]string{"deb.debian.org", "security.debian.org"}, []string{"paste.debian.net"}},
		"@maven":       {[]string{"repo.maven.apache.org", "repo1.maven.org"}, []string{"oss.sonatype.org"}},
		"@anthropic":   {[]string{"api.anthropic.com", "platform.claude.com"}, []string{"claude.ai", "statsig.anthropic.com"}},
		"@openai":      {[]string{"api.openai.com", "chatgpt.com", "auth.openai.com"}, []string{"ab.chatgpt.com"}},
		"@google":      {[]string{"generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com"}, []string{"storage.googleapis.com", "play.googleapis.com"}},
		"@github-read": {[]string{"codeload.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com", "release-assets.githubusercontent.com"}, []string{"github.com", "api.github.com", "gist.github.com", "uploads.github.com"}},
	}
	var everything []string
	for _, name := range Names() {
		rules, err := Expand(name)
		if err != nil {
			t.Fatal(err)
		}
		p := egress.Policy{Allow: rules}
		for _, r := range rules {
			if r.Shared() != "" {
				t.Errorf("%s: many tenants have names that %s covers", name, r)
			}
		}
		row, known := want[name]
		if name == "@balanced" {
			continue
		}
		if !known {
			t.Errorf("%s has no row", name)
		}
		everything = append(everything, row.open...)
		for _, host := range row.open {
			if _, allowed := p.Name(host, 443); !allowed {
				t.Errorf("%s does not open %s", name, host)
			}
			if _, allowed := p.Name(host, 22); allowed {
				t.Errorf("%s opens %s at port 22", name, host)
			}
		}
		if len(rules) != len(row.open) {
			t.Errorf("%s has %d rules, want %d", name, len(rules), len(row.open))
		}
		for _, host := range row.closed {
			if _, allowed := p.Name(host, 443); allowed {
				t.Errorf("%s opens %s", name, host)
			}
		}
	}
	balanced, err := Expand("@balanced")
	if err != nil || len(balanced) != len(everything) || len(Names()) != len(want)+1 {
		t.Errorf("@balanced has %d rules of %d; %d sets; %v", len(balanced), len(everything), len(Names()), err)
	}
	if !slices.ContainsFunc(balanced, func(r egress.Rule) bool { return r.String() == "registry.npmjs.org" }) {
		t.Error("@balanced is without @npm")
	}
}

func TestExpand(t *testing.T) {
	if rules, err := Expand(" files.test:8080 "); err != nil || len(rules) != 1 || rules[0].String() != "files.test:8080" {
		t.Error(rules, err)
	}
	for _, text := range []string{"@", "@nowhere", "@npm:443", "@npm @pypi", "*", "*.com", ""} {
		if rules, err := Expand(text); err == nil {
			t.Errorf("%q is %v", text, rules)
		}
	}
}

func TestRulesOfRequests(t *testing.T) {
	for text, want := range map[string]bool{"a.test/path": true, "GET,HEAD a.test": true, "GET a.test:8080/x": true, "*.a.test/x": true, "*/x": false, "a.test b.test": false, "/x": false} {
		_, err := Expand(text)
		if err == nil || strings.Contains(err.Error(), "not possible yet") != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
