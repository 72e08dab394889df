package egress

import (
	"net/netip"
	"strings"
	"testing"
)

func mustParse(t testing.TB, texts ...string) (rules []Rule) {
	t.Helper()
	for _, text := range texts {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	return rules
}

func TestPolicy(t *testing.T) {
	p := Policy{
		Allow: mustParse(t, "files.test", "*.a.test", "**.b.test", "git.test:22", "Bücher.test.", "10.1.0.0/16:5432", "[fd00::/8]:22", "xn--bcher-kva.example"),
		Deny:  mustParse(t, "no.a.test", "**.secret.b.test", "10.1.2.3:5432"),
	}
	for name, want := range map[string]map[uint16]bool{
		"files.test":         {443: true, 80: true, 8080: false, 22: false},
		"www.files.test":     {443: false},
		"evilfiles.test":     {443: false},
		"files.test.evil":    {443: false},
		"www.a.test":         {443: true},
		"a.test":             {443: false},
		"x.y.a.test":         {443: false},
		"evila.test":         {443: false},
		"no.a.test":          {443: false, 80: false},
		"x.b.test":           {443: true},
		"x.y.b.test":         {443: true},
		"b.test":             {443: false},
		"secret.b.test":      {443: true},
		"x.secret.b.test":    {443: false},
		"git.test":           {22: true, 443: false, 80: false},
		"xn--bcher-kva.test": {443: true},
		"":                   {443: false},
	} {
		for port, want := range want {
			if _, allowed := p.Name(name, port); allowed != want {
				t.Errorf("%s:%d: %v", name, port, allowed)
			}
		}
	}
	for to, want := range map[string]bool{
		"10.1.9.9:5432": true, "10.1.9.9:443": false, "10.2.0.1:5432": false, "10.1.2.3:5432": false, "[fd12::1]:22": true, "[2606::1]:22": false,
		"[::ffff:10.1.9.9]:5432": true,
	} {
		at := netip.MustParseAddrPort(to)
		if _, allowed := p.Address(at.Addr(), at.Port()); allowed != want {
			t.Errorf("%s: %v", to, allowed)
		}
	}
	if _, allowed := (Policy{}).Name("files.test", 443); allowed {
		t.Error("the zero policy allows something")
	}
}

func TestRefusedRules(t *testing.T) {
	for _, text := range []string{
		"", " ", "*", "**", "*.com", "**.co.uk", "*.test", "*.*.a.test", "a.*.test", "*a.test", "files.test:", "files.test:0", "files.test:65536",
		"files.test:0443", "files.test:+443", "files.test:443:80", "127.1", "0x7f.1", "10.0.0.0/8", "10.0.0.1", "::1:80", "[::1", "[::ffff:10.0.0.1]:80",
		"files.test =", "files.test 10.0.0.0/8", "files.test =x", "10.0.0.0/8:80 =10.0.0.0/8", "a.test b.test c.test", "http://files.test", "files.test/path",
		"user@files.test", "fe80::1%eth0:80", "@nowhere",
	} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
}

func TestSharedSuffixes(t *testing.T) {
	for text, want := range map[string]string{
		"*.github.io": "github.io", "**.s3.amazonaws.com": "s3.amazonaws.com", "me.github.io": "", "*.example.com": "", "github.io": "",
	} {
		if got := mustParse(t, text)[0].Shared(); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestRuleVets(t *testing.T) {
	r := mustParse(t, "db.test:5432 =10.9.0.0/16")[0]
	wide := mustParse(t, "db.test:5432 =0.0.0.0/0")[0]
	for address, want := range map[string][2]bool{
		"10.9.9.9": {true, true}, "10.8.0.1": {false, true}, "192.0.2.1": {true, true}, "169.254.169.254": {false, false},
		"127.0.0.1": {false, false}, "100.64.0.1": {false, false}, "::ffff:10.9.9.9": {true, true},
	} {
		a := netip.MustParseAddr(address)
		if got := [2]bool{r.Vet(a) == nil, wide.Vet(a) == nil}; got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

// FuzzRule wants every rule to be about what it names, to be read the same again, and never to cover names that only end alike.
func FuzzRule(f *testing.F) {
	for _, text := range []string{"files.test", "*.a.test:22", "**.b.test =10.0.0.0/8", "10.0.0.0/8:53", "[fd00::/8]:22", "bücher.test"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule(text)
		if err != nil {
			return
		}
		if again, err := ParseRule(r.String()); err != nil || again != r {
			t.Errorf("%q: %+v, then %+v, %v", text, r, again, err)
		}
		if r.host == "" {
			return
		}
		port := r.port
		if port == 0 {
			port = 443
		}
		name := strings.Repeat("x.", int(r.before)) + r.host
		if !r.Names(name, port) {
			t.Errorf("%q is not about %q", text, name)
		}
		for _, other := range []string{"evil" + r.host, r.host + ".evil", r.host + "x"} {
			if r.Names(other, port) {
				t.Errorf("%q is about %q", text, other)
			}
		}
	})
}
