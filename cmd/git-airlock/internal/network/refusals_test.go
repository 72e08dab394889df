package network

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// TestDenialsAreLifted compares the commands that end denials from all sources.
func TestDenialsAreLifted(t *testing.T) {
	rules := control.Rules{Deny: []control.Rule{
		{Text: "a.test", Source: live}, {Text: "GET b.test/*", Source: denyOption}, {Text: "c.test", Source: denyOption}, {Text: "pypi.org", Source: "@pypi, --deny"},
		{Text: "files.pythonhosted.org", Source: "@pypi, --deny"}, {Text: "d.test", Source: fromCommand}, {Text: "e.test", Source: fromPolicy}, {Text: "f.test", Source: ".git/config"},
	}}
	for i, want := range []string{
		"git airlock net allow a.test", "git airlock stop && git airlock start --deny c.test --deny @pypi", "git airlock stop && git airlock start --deny 'GET b.test/*' --deny @pypi",
		"git airlock stop && git airlock start --deny 'GET b.test/*' --deny c.test", "git airlock stop && git airlock start --deny 'GET b.test/*' --deny c.test",
		"git airlock stop && git -c airlock.deny= airlock start", "git airlock policy", "git config --show-origin --get-all airlock.deny",
	} {
		if got := Lift(rules, rules.Deny[i]); got != want {
			t.Errorf("%+v: %q, want %q", rules.Deny[i], got, want)
		}
	}
	if got := Lift(control.Rules{Deny: rules.Deny[1:2]}, rules.Deny[1]); got != "git airlock stop && git airlock start --deny ''" {
		t.Errorf("%q", got)
	}
}

// TestDeniedByRequests allows random requests in the presence of random denials. A permission that a denial is said to defeat must allow no
// request, and that of one request must be said to be defeated if the request is refused.
func TestDeniedByRequests(t *testing.T) {
	now, random := time.Now(), rand.New(rand.NewPCG(7, 8))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	defeated := 0
	for range 2000 {
		rules := control.Rules{Deny: []control.Rule{{Text: pick("GET ", "PUT,GET ", "") + pick("a.test", "*.a.test", "**.a.test", "b.a.test") + pick("", "/a", "/a/**", "/*", "/**"), Source: "config"}}}
		host, wide := pick("b.a.test", "c.b.a.test", "a.test"), pick("*.a.test", "**.a.test", "*.b.a.test")
		method, path := pick("GET", "PUT"), pick("/a", "/A", "/a/b", "/b", "/", "/a/")
		exact := method + " " + host + path
		for _, text := range []string{exact, host + pick("", path), wide + pick("", "/a/*", "/**", path), pick("GET", "PUT,GET") + " " + pick(host, wide)} {
			with, added, err := With(rules, text, false, now, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			asked := Target{Host: host, Port: 443, Method: method, Path: path}
			allowed, by := decide(Rules{Rules: with}, asked, now).Allowed, DeniedBy(with, added[0], now)
			if allowed && by != nil || text == exact && allowed != (by == nil) {
				t.Errorf("%q next to %q: %v is allowed: %v, denied by %+v", text, rules.Deny[0].Text, asked, allowed, by)
			}
			if by != nil {
				defeated++
			}
		}
	}
	if defeated < 300 {
		t.Errorf("%d permissions were defeated", defeated)
	}
}

// TestHintsAllowOneRequest refuses random requests by random rules. What is proposed first must be a permission of the request, and of no
// other one if a rule about requests helps at all.
func TestHintsAllowOneRequest(t *testing.T) {
	now, random := time.Now(), rand.New(rand.NewPCG(3, 4))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	request := func() Target {
		path := ""
		for range 1 + random.IntN(3) {
			path += "/" + pick("a", "b*", "*", "**", "c'd", "%2A", "e%20f", "g;h", "$(i)", "j...k")
		}
		return Target{Host: "a.example", Port: 443, Method: pick("GET", "PUT", "M-SEARCH", "-X"), Path: path}
	}
	refused := 0
	for range 500 {
		var rules Rules
		for range random.IntN(3) {
			rules.Allow = append(rules.Allow, control.Rule{Text: pick("GET ", "") + "a.example/" + pick("a", "*", "b%2A", "a/**", "*/a")})
		}
		target := request()
		r := control.Record{Kind: control.KindRefusal, Name: target.Host, Port: target.Port, Method: target.Method, Path: target.Path}
		if DecideAgain(rules, r, now).Allowed {
			continue
		}
		refused++
		hint := suggestions(target)[0]
		if next := Next(rules, r, now)[0]; next != "git airlock net allow "+gitops.Pasteable(hint) {
			t.Errorf("%q, and not %q", next, hint)
		}
		with, _, err := With(rules.Rules, hint, false, now, time.Time{})
		if err != nil || !decide(Rules{Rules: with}, target, now).Allowed {
			t.Errorf("%+v: %q does not help: %v", target, hint, err)
		}
		for range 10 {
			other := request()
			same := strings.ReplaceAll(other.Path, "%2A", "*") == strings.ReplaceAll(target.Path, "%2A", "*") && (other.Method == target.Method || target.Method == "-X")
			if decide(Rules{Rules: with}, other, now).Allowed && !decide(rules, other, now).Allowed && !same {
				t.Errorf("%q is for %+v, and allows %+v as well", hint, target, other)
			}
		}
	}
	if refused < 200 {
		t.Errorf("%d refusals", refused)
	}
}

// TestEncryptedHelloIsExplained explains connections whose encrypted client hello was refused. The rule that is proposed must lift the refusal.
func TestEncryptedHelloIsExplained(t *testing.T) {
	now := time.Now()
	for _, x := range []struct {
		rules         control.Rules
		port          uint16
		address, want string // the rule that helps; empty if the network ends TLS
	}{
		{control.Rules{Allow: []control.Rule{{Text: "a.test"}}}, 443, "192.0.2.1", "a.test ech"},
		{control.Rules{Allow: []control.Rule{{Text: "a.test:8443"}}}, 8443, "", "a.test:8443 ech"},
		{control.Rules{Allow: []control.Rule{{Text: "a.test =10.0.0.0/8"}}}, 443, "10.0.0.5", "a.test =10.0.0.5 ech"},
		{control.Rules{Learn: true}, 443, "", "a.test ech"},
		{control.Rules{Allow: []control.Rule{{Text: "GET a.test"}}}, 443, "", ""},
		{control.Rules{Allow: []control.Rule{{Text: "a.test"}}, Credentials: []control.Credential{{Name: "c", Rules: []string{"a.test/v1/**"}}}}, 443, "", ""},
	} {
		rules := Rules{Rules: x.rules}
		r := control.Record{Kind: control.KindRefusal, Time: now, Name: "a.test", Port: x.port, Address: x.address, Reason: control.ReasonEncrypted}
		recent := func() int { return len(refusals([]control.Record{r}, rules, time.Time{}, now, 5)) }
		if d := DecideAgain(rules, r, now); d.Allowed != (x.want == "") || recent() != 0 != (x.want != "") {
			t.Errorf("%+v: %+v, %d refusals", x.rules, d, recent())
		}
		if x.want == "" {
			continue
		}
		if next := Next(rules, r, now); next[0] != "git airlock net allow "+gitops.Pasteable(x.want) || len(next) != 3 || len(Risks(rules, r, now)) != 1 {
			t.Errorf("%+v: %q, %q", x.rules, next, Risks(rules, r, now))
		}
		with, _, err := With(rules.Rules, x.want, false, now, time.Time{})
		if rules.Rules = with; err != nil || !DecideAgain(rules, r, now).Allowed || recent() != 0 {
			t.Errorf("%+v: %q does not help: %v", x.rules, x.want, err)
		}
	}
}

// TestKilledHolder checks that the state which a killed holder has left does not count as that of a running network.
func TestKilledHolder(t *testing.T) {
	dir := t.TempDir()
	if err := control.WriteRules(dir, control.Rules{}); err != nil {
		t.Fatal(err)
	}
	use := control.CredentialUse{Name: "typed", Known: true, Since: time.Now().Add(-time.Minute)}
	if err := control.WriteState(dir, control.State{Credentials: []control.CredentialUse{use}}); err != nil {
		t.Fatal(err)
	}
	for _, runs := range []bool{true, false} {
		uses := RecentRefusals(dir, false, runs, time.Now()).Uses
		if len(uses) != 1 || uses[0].Ended == runs || uses[0].Since.IsZero() == runs {
			t.Errorf("runs %t: %+v", runs, uses)
		}
	}
}

// TestPortsOfProxies has refusals at ports at which proxies listen. A rule for one would open all that the proxy reaches, so it is proposed only
// with these words.
func TestPortsOfProxies(t *testing.T) {
	now := time.Now()
	denied := Rules{Rules: control.Rules{Deny: []control.Rule{{Text: "a.test:3128", Source: live}}}}
	for _, x := range []struct {
		rules   Rules
		record  control.Record
		want    string
		warning bool
	}{
		{Rules{}, control.Record{Seq: 7, Name: "a.test", Port: 3128}, "git airlock net explain 7", true},
		{Rules{}, control.Record{Seq: 8, Address: "192.0.2.1", Port: 8080}, "git airlock net explain 8", true},
		{Rules{}, control.Record{Name: "a.test", Port: 22}, "git airlock net allow a.test:22", false},
		{Rules{Rules: control.Rules{Lockdown: true}}, control.Record{Name: "a.test", Port: 3128}, "git airlock net unlock", true},
		{denied, control.Record{Seq: 9, Name: "a.test", Port: 3128}, "git airlock net explain 9", true},
	} {
		r := x.record
		r.Kind, r.Proto, r.Reason = control.KindRefusal, control.ProtoTCP, control.ReasonNoRule
		if next := Proposed(x.rules, r, now); len(next) == 0 || next[0] != x.want {
			t.Errorf("%+v: %q, want %q", r, next, x.want)
		}
		risks := strings.Join(Risks(x.rules, r, now), "\n")
		if strings.Contains(risks, "opens everything that the proxy reaches") != x.warning || strings.Contains(risks, UpstreamKey) != x.warning {
			t.Errorf("%+v: %q", r, risks)
		}
	}
}
