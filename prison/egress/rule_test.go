package egress

import (
	"net/netip"
	"reflect"
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
			if allowed := p.Decide(name, netip.AddrPortFrom(netip.Addr{}, port)).Allowed; allowed != want {
				t.Errorf("%s:%d: %v", name, port, allowed)
			}
		}
	}
	for to, want := range map[string]bool{
		"10.1.9.9:5432": true, "10.1.9.9:443": false, "10.2.0.1:5432": false, "10.1.2.3:5432": false, "[fd12::1]:22": true, "[2606::1]:22": false,
		"[::ffff:10.1.9.9]:5432": true,
	} {
		at := netip.MustParseAddrPort(to)
		if allowed := p.Decide("", at).Allowed; allowed != want {
			t.Errorf("%s: %v", to, allowed)
		}
	}
	if (Policy{}).Decide("files.test", netip.AddrPortFrom(netip.Addr{}, 443)).Allowed {
		t.Error("the zero policy allows something")
	}
}

func TestRefusedRules(t *testing.T) {
	for _, text := range []string{
		"", " ", "*", "**", "com", "co.uk", "*.com", "**.co.uk", "*.test", "*.*.a.test", "a.*.test", "*a.test", "files.test:", "files.test:0", "files.test:65536",
		"files.test:0443", "files.test:+443", "files.test:443:80", "127.1", "0x7f.1", "10.0.0.0/8", "10.0.0.1", "::1:80", "[::1", "[::ffff:10.0.0.1]:80",
		"files.test =", "files.test 10.0.0.0/8", "files.test =x", "10.0.0.0/8:80 =10.0.0.0/8", "a.test b.test c.test", "http://files.test", "get files.test", "GET, files.test", "GET files.test:8080/x", "GET 10.0.0.1:80", "10.0.0.1/x", "files.test/a/../b",
		"files.test//", "files.test/a**", "GET files.test ech", "GET *", "*/x", "CONNECT files.test", "GET,TRACE files.test/x",
		"user@files.test", "fe80::1%eth0:80", "@nowhere",
	} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
}

// TestSchemesAreRefused checks what people are told who paste an address of the web.
func TestSchemesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"http://files.test": "files.test", "https://files.test/": "files.test", "GET https://files.test/a/b": "files.test/a/b", "https://files.test:8443 =10.0.0.0/8": "files.test:8443",
	} {
		if _, err := ParseRule(text); err == nil || !strings.HasSuffix(err.Error(), ": a rule has no scheme: write "+want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestPolicyDecidesRequests checks on which connections each request is decided, and which requests are allowed.
func TestPolicyDecidesRequests(t *testing.T) {
	p := Policy{
		Allow: mustParse(t, "GET,HEAD files.test/pub/**", "POST files.test:443/in", "all.test", "mixed.test", "GET mixed.test/x", "*.a.test/x", "closed.test/x"),
		Deny:  mustParse(t, "all.test/private/**", "closed.test"),
	}
	to := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.Addr{}, port) }
	for name, want := range map[string]Decision{
		"files.test": {Allowed: true, PerRequest: true}, "all.test": {Allowed: true, PerRequest: true}, "mixed.test": {Allowed: true}, "www.a.test": {Allowed: true, PerRequest: true},
		"a.test": {}, "closed.test": {}, "evil.test": {},
	} {
		if d := p.Decide(name, to(443)); d.Allowed != want.Allowed || d.PerRequest != want.PerRequest {
			t.Errorf("%s: %+v", name, d)
		}
		if p.Decide(name, to(22)).Allowed {
			t.Errorf("%s: another port is open", name)
		}
	}
	for text, want := range map[string]bool{
		"GET files.test /pub/a": true, "HEAD files.test /pub/": true, "POST files.test /pub/a": false, "GET files.test /": false, "POST files.test /in": true,
		"GET all.test /x": true, "PUT all.test /private/x": false, "GET www.a.test /x": true, "GET www.a.test /": false, "GET closed.test /x": false,
	} {
		f := strings.Fields(text)
		if d := p.Request(f[1], 443, netip.Addr{}, f[0], f[2]); d.Allowed != want || d.Allowed == (d.Reason != "") {
			t.Errorf("%s: %+v", text, d)
		}
	}
	if p.Request("files.test", 80, netip.Addr{}, "POST", "/in").Allowed {
		t.Error("a rule for one port is about another")
	}
	if got := strings.Join(p.requestNames(), " "); got != "files.test mixed.test a.test closed.test all.test" {
		t.Errorf("names: %s", got)
	}
	p.Open = true
	if d := p.Decide("all.test", to(443)); d.Allowed {
		t.Errorf("an open network, in which requests are not seen: %+v", d)
	}
	p.Open, p.Learn, p.Allow = false, true, nil
	if !p.Request("all.test", 443, netip.Addr{}, "GET", "/x").Allowed || p.Request("all.test", 443, netip.Addr{}, "GET", "/private/x").Allowed || p.Decide("closed.test", to(80)).Allowed {
		t.Error("a network that learns")
	}
}

func TestSharedSuffixes(t *testing.T) {
	for text, want := range map[string]string{
		"*.github.io": "github.io", "**.s3.amazonaws.com": "s3.amazonaws.com", "me.github.io": "", "*.example.com": "", "github.io": "",
		"**.amazonaws.com": "amazonaws.com", "**.eu-west-1.amazonaws.com": "amazonaws.com", "**.me.s3.amazonaws.com": "", "*.amazonaws.com": "", "**.core.windows.net": "windows.net",
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

// FuzzRule checks that every rule covers the host that it names, that it is read the same again, and that it covers no other name with the same end.
func FuzzRule(f *testing.F) {
	for _, text := range []string{"files.test", "*.a.test:22", "**.b.test =10.0.0.0/8", "10.0.0.0/8:53", "[fd00::/8]:22", "bücher.test", "GET,HEAD a.test/x/**", "GET ech", "a.test:80/x =10.0.0.0/8"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule(text)
		if err != nil {
			return
		}
		if again, err := ParseRule(r.String()); err != nil || !reflect.DeepEqual(again, r) {
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
