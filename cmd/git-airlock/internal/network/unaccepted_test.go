package network

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// TestUnacceptedCertificate proposes only commands after which a program that accepts no certificate of the network reaches the host. Otherwise it
// says what keeps TLS ending at the network. Without such words nothing but an explanation is proposed.
func TestUnacceptedCertificate(t *testing.T) {
	now := time.Now()
	allow := []control.Rule{{Text: "GET a.test/p*", Source: live}}
	key := control.Credential{Name: "key", Rules: []string{"a.test"}}
	base := key
	base.Base = true
	r := control.Record{Seq: 7, Kind: control.KindFlow, Verdict: control.VerdictFailed, Proto: control.ProtoTCP, Name: "a.test", Port: 443,
		Reason: control.ReasonCertificate}
	mode := "git config airlock.credential.key.mode base && git airlock stop && git airlock start"
	for _, x := range []struct {
		rules control.Rules
		next  []string
		said  string
	}{
		{control.Rules{}, []string{"git airlock net allow a.test"}, "such a rule is for the whole host"},
		{control.Rules{Deny: []control.Rule{{Text: "POST b.test"}}}, []string{"git airlock net allow a.test"}, "such a rule is for the whole host"},
		{control.Rules{Deny: []control.Rule{{Text: "POST a.test", Until: now.Add(-time.Second)}}}, []string{"git airlock net allow a.test"}, "such a rule"},
		{control.Rules{Deny: []control.Rule{{Text: "POST a.test", Source: fromPolicy}}}, nil, "the rule POST a.test (" + fromPolicy + ") denies requests to a.test"},
		{control.Rules{Deny: []control.Rule{{Text: "a.test/x/**"}}}, nil, "TLS to the host ends at the network"},
		{control.Rules{Deny: []control.Rule{{Text: "a.test", Source: live}}}, []string{"git airlock net allow a.test"}, ""},
		{control.Rules{Lockdown: true}, []string{"git airlock net unlock"}, ""},
		{control.Rules{Credentials: []control.Credential{key}}, []string{mode}, "http://a.test, and the network speaks TLS"},
		{control.Rules{Credentials: []control.Credential{key}, Deny: []control.Rule{{Text: "POST a.test"}}}, []string{mode}, "http://a.test, and the network"},
		{control.Rules{Credentials: []control.Credential{base}}, nil, "the credential key has the mode base"},
		{control.Rules{Credentials: []control.Credential{base, key}}, nil, "TLS to the host ends at the network"},
	} {
		rules := Rules{Rules: x.rules}
		if next, said := Next(rules, r, now), Risks(rules, r, now); !slices.Equal(next, x.next) || len(said) > 1 || (len(said) == 0) != (x.said == "") {
			t.Errorf("without a rule that allows requests, %+v: %q, %q", x.rules, next, said)
		}
		rules.Allow = allow
		if next := Next(rules, r, now); !slices.Equal(next, x.next) {
			t.Errorf("%+v: %q, want %q", x.rules, next, x.next)
		}
		if said := strings.Join(Risks(rules, r, now), "\n"); !strings.Contains(said, x.said) || x.said == "" && said != "" {
			t.Errorf("%+v: %q, want %q", x.rules, said, x.said)
		}
		if next := Proposed(rules, r, now); !slices.Equal(next, []string{"git airlock net explain 7"}) {
			t.Errorf("%+v: %q", x.rules, next)
		}
	}
}
