package tenants

import (
	"strings"
	"testing"

	"golang.org/x/net/publicsuffix"
)

// TestDomains checks the list with that of public suffixes.
func TestDomains(t *testing.T) {
	for domain, below := range domains {
		suffix, icann := publicsuffix.PublicSuffix("me." + below)
		if suffix != below || icann || !strings.HasSuffix(below, "."+domain) {
			t.Errorf("%s: names below %s are those of %s", domain, below, suffix)
		}
		if suffix, icann := publicsuffix.PublicSuffix(domain); suffix == domain || !icann {
			t.Errorf("%s is a public suffix already: %s", domain, suffix)
		}
	}
}

func TestAbove(t *testing.T) {
	for name, want := range map[string]string{
		"amazonaws.com": "amazonaws.com", "eu-west-1.amazonaws.com": "amazonaws.com", "evilamazonaws.com": "", "example.com": "", "com": "",
	} {
		if got := Above(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
