package sets

import (
	"net/netip"
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
		"@github-read": {[]string{"github.com", "api.github.com", "codeload.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com", "release-assets.githubusercontent.com"}, []string{"gist.github.com", "uploads.github.com"}},
	}
	count := 0
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
		for _, host := range row.open {
			if !p.Decide(host, netip.AddrPortFrom(netip.Addr{}, 443)).Allowed {
				t.Errorf("%s does not open %s", name, host)
			}
			if p.Decide(host, netip.AddrPortFrom(netip.Addr{}, 22)).Allowed {
				t.Errorf("%s opens %s at port 22", name, host)
			}
		}
		hosts := map[string]bool{}
		for _, r := range rules {
			fields := strings.Fields(r.String())
			host, _, _ := strings.Cut(fields[len(fields)-1], "/")
			hosts[host] = true
		}
		if len(hosts) != len(row.open) {
			t.Errorf("%s has %d hosts, want %d", name, len(hosts), len(row.open))
		}
		count += len(rules)
		for _, host := range row.closed {
			if p.Decide(host, netip.AddrPortFrom(netip.Addr{}, 443)).Allowed {
				t.Errorf("%s opens %s", name, host)
			}
		}
	}
	balanced, err := Expand("@balanced")
	if err != nil || len(balanced) != count || len(Names()) != len(want)+1 {
		t.Errorf("@balanced has %d rules of %d; %d sets; %v", len(balanced), count, len(Names()), err)
	}
	if !slices.ContainsFunc(balanced, func(r egress.Rule) bool { return r.String() == "registry.npmjs.org" }) {
		t.Error("@balanced is without @npm")
	}
}

// TestGitHubIsReadOnly asks for requests of git and of the API, as they are sent.
func TestGitHubIsReadOnly(t *testing.T) {
	rules, err := Expand("@github-read")
	if err != nil {
		t.Fatal(err)
	}
	p := egress.Policy{Allow: rules}
	for text, want := range map[string]bool{
		"GET github.com /me/r.git/info/refs": true, "POST github.com /me/r.git/git-upload-pack": true, "POST github.com /me/r/git-upload-pack": true,
		"POST github.com /me/r.git/git-receive-pack": false, "POST github.com /me/r/x/git-upload-pack": false, "POST github.com /session": false,
		"GET api.github.com /repos/me/r/issues": true, "HEAD api.github.com /": true, "POST api.github.com /gists": false, "POST api.github.com /graphql": false,
		"PUT api.github.com /repos/me/r/contents/x": false, "PATCH github.com /me/r": false,
	} {
		f := strings.Fields(text)
		if d, err := p.Ask(egress.Question{Host: f[1], Port: 443, Method: f[0], Path: f[2]}); err != nil || d.Allowed != want {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
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
