package network

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/sets"
)

// TestLearnedRulesAllowWhatWasReached makes random records. The rules that are learned from them must allow each host that was
// reached, and no other.
func TestLearnedRulesAllowWhatWasReached(t *testing.T) {
	hosts := []string{"a.test", "b.a.test", "registry.npmjs.org", "pypi.org", "files.pythonhosted.org", "proxy.golang.org", "sum.golang.org", "192.0.2.1", "2001:db8::1"}
	ports := []uint16{22, 80, 443, 8080}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var learned Learned
		reached := map[string]bool{}
		for range random.IntN(12) {
			r := control.Record{Kind: control.KindFlow, Verdict: control.VerdictAllow, Port: ports[random.IntN(len(ports))]}
			if host := hosts[random.IntN(len(hosts))]; random.IntN(4) == 0 {
				r.Kind, r.Verdict, r.Name = control.KindRefusal, control.VerdictDeny, host
			} else if r.Name = host; host[0] <= '9' {
				r.Name, r.Address = "", host
			}
			learned.Add(r)
			if r.Kind == control.KindFlow {
				reached[exact(TargetOf(r))] = true
			}
		}
		var rules control.Rules
		for _, text := range learned.Rules() {
			var err error
			if rules.Allow, err = add(rules.Allow, []string{text}, "test"); err != nil {
				t.Fatal(err)
			}
		}
		for _, host := range hosts {
			for _, port := range ports {
				target := Target{Host: host, Port: port, IsAddress: host[0] <= '9'}
				if got := decide(Rules{Rules: rules}, target, time.Now()).Allowed; got != reached[exact(target)] {
					t.Errorf("seed %d: %v is allowed: %v, reached: %v, by %q", seed, target, got, !got, learned.Rules())
				}
			}
		}
	}
}

func TestLearnedSets(t *testing.T) {
	var learned Learned
	for _, host := range []string{"pypi.org", "files.pythonhosted.org", "proxy.golang.org"} {
		learned.Add(control.Record{Kind: control.KindFlow, Verdict: control.VerdictAllow, Name: host, Port: 443})
	}
	if got := learned.Rules(); !slices.Equal(got, []string{"@pypi", "proxy.golang.org"}) {
		t.Errorf("%q", got)
	}
}

// TestLearnedRequests learns from a server of which all requests were refused, from requests of plain HTTP that a rule about requests
// or about the whole host allowed, and from a server that was first reached by single requests and then as a whole.
func TestLearnedRequests(t *testing.T) {
	flow := control.Record{Kind: control.KindFlow, Verdict: control.VerdictAllow, Proto: control.ProtoHTTP, Seen: control.SeenOpaque, Port: 80}
	request := flow
	request.Kind, request.Seen, request.Method, request.Path = control.KindRequest, control.SeenRequest, "GET", "/pong"
	var learned Learned
	for _, c := range []struct{ host, rule string }{{"some.test", "GET some.test/p* (--allow)"}, {"all.test", "all.test (--allow)"}, {"any.test", ""}, {"none.test", "GET none.test/ok (--allow)"}} {
		flow.Name, flow.Rule, request.Name, request.Rule = c.host, c.rule, c.host, c.rule
		if c.host == "none.test" {
			request.Kind, request.Verdict = control.KindRefusal, control.VerdictDeny
		}
		learned.Add(request)
		learned.Add(flow)
	}
	seen := control.Record{Kind: control.KindRequest, Verdict: control.VerdictAllow, Proto: control.ProtoTLS, Seen: control.SeenRequest, Name: "all.test", Port: 443, Method: "PUT", Path: "/x"}
	learned.Add(seen)
	if got := learned.Rules(); !slices.Equal(got, []string{"GET some.test/pong", "all.test", "any.test"}) {
		t.Errorf("%q", got)
	}
}

// TestRequestsAreDecided decides requests to a server of which only some paths are allowed, and learns the requests.
func TestRequestsAreDecided(t *testing.T) {
	rules := control.Rules{
		Allow: []control.Rule{{Text: "GET a.test/pub/**", Source: "config"}, {Text: "b.test", Source: "config"}}, Deny: []control.Rule{{Text: "b.test/x", Source: "team"}},
	}
	for _, c := range []struct {
		target  Target
		allowed bool
		rule    string
	}{
		{Target{Host: "a.test", Port: 443}, true, "GET a.test/pub/**"}, {Target{Host: "a.test", Port: 80, Method: "GET", Path: "/pub/x"}, true, "GET a.test/pub/**"},
		{Target{Host: "a.test", Port: 443, Method: "PUT", Path: "/pub/x"}, false, ""}, {Target{Host: "a.test", Port: 443, Method: "GET", Path: "/pub/../x"}, false, ""},
		{Target{Host: "b.test", Port: 443, Method: "GET", Path: "/x"}, false, "b.test/x"}, {Target{Host: "b.test", Port: 443}, true, "b.test"},
	} {
		v := decide(Rules{Rules: rules}, c.target, time.Now())
		rule := ""
		if v.Rule != nil {
			rule = v.Rule.Text
		}
		if v.Allowed != c.allowed || rule != c.rule || v.Allowed && v.Rule.Source != "config" {
			t.Errorf("%v: %+v by %q", c.target, v, rule)
		}
	}
	if by := DeniedBy(rules, control.Rule{Text: "b.test"}, time.Now()); by != nil {
		t.Errorf("%+v denies more than it is about", by)
	}
	var learned Learned
	seen := control.Record{Verdict: control.VerdictAllow, Proto: control.ProtoTLS, Seen: control.SeenRequest, Name: "a.test", Port: 443, Kind: control.KindFlow}
	learned.Add(seen)
	seen.Kind, seen.Method, seen.Path = control.KindRequest, "GET", "/pub/x"
	learned.Add(seen)
	if got := learned.Rules(); !slices.Equal(got, []string{"GET a.test/pub/x"}) {
		t.Errorf("%q", got)
	}
}

// TestOpaque lists the rules of an allowlist whose contents the network does not see.
func TestOpaque(t *testing.T) {
	now := time.Now()
	rules := Rules{Rules: control.Rules{Deny: []control.Rule{{Text: "b.test/x"}, {Text: "x.wide.test/y"}, {Text: "**.all.test/y"}, {Text: "no.test"}}}}
	rules.Credentials = []control.Credential{{Rules: []string{"GET,HEAD key.test:443"}}, {Rules: []string{"**.keys.test:443"}}}
	want := map[string]bool{
		"a.test": true, "a.test:80": false, "a.test:22": true, "GET c.test/pub/**": false, "both.test": true, "GET both.test/x": true, "203.0.113.0/24:80": true, "203.0.113.0/24:443": true,
		"b.test": false, "b.test:22": true, "*.wide.test": true, "x.wide.test": false, "**.all.test": false, "z.all.test": false, "no.test": false, "GET no.test": false, "key.test": false,
		"**.keys.test": false, "*.keys.test": false, "keys.test": true, "db.test": true, "GET db.test =10.0.0.0/8": false, "e.test ech": true,
	}
	for text := range want {
		rules.Allow = append(rules.Allow, control.Rule{Text: text})
	}
	for _, rules.Lockdown = range []bool{false, true} {
		for _, r := range rules.Allow {
			if got := Opaque(rules, r, now); got != want[r.Text] {
				t.Errorf("%s, lockdown %v: %v", r.Text, rules.Lockdown, got)
			}
		}
	}
	rules.Open = true
	if !Opaque(rules, control.Rule{Text: "b.test"}, now) {
		t.Error("an open network sees requests")
	}
}

func TestLiveRules(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	rules := control.Rules{Deny: []control.Rule{{Text: "b.test", Source: "config"}}}
	for _, change := range []struct {
		text string
		deny bool
		end  time.Time
	}{{"a.test", true, time.Time{}}, {"a.test", false, time.Time{}}, {"c.test", false, now.Add(time.Hour)}, {"d.test", false, now.Add(-time.Hour)}} {
		var err error
		if rules, _, err = With(rules, change.text, change.deny, now, change.end); err != nil {
			t.Fatal(err)
		}
	}
	for host, want := range map[string]bool{"a.test": true, "b.test": false, "c.test": true, "d.test": false} {
		if v := decide(Rules{Rules: rules}, Target{Host: host, Port: 443}, now); v.Allowed != want {
			t.Errorf("%s: %+v", host, v)
		}
	}
	if by := DeniedBy(rules, control.Rule{Text: "b.test"}, now); by == nil || by.Source != "config" {
		t.Error(by)
	}
	rules.Lockdown = true
	written, err := Write(dir, rules)
	if err != nil || written.Generation != 1 {
		t.Fatal(written, err)
	}
	begun, err := Begin(dir, control.Rules{Allow: []control.Rule{{Text: "e.test", Source: "config"}}}, nil, now)
	if err != nil || !begun.Lockdown {
		t.Fatal(begun, err)
	}
	after, err := control.ReadRules(dir)
	var texts []string
	for _, r := range after.Allow {
		texts = append(texts, r.Text)
	}
	if want := []string{"e.test", "a.test", "c.test"}; err != nil || !slices.Equal(texts, want) || len(after.Deny) != 0 || after.Generation != 2 || !after.Lockdown {
		t.Errorf("%+v, %v; want %q", after, err, want)
	}
}

// TestRulesThatEnd adds rules to a network that allows *.sub.test, and asks while they hold and afterwards. A rule that ends
// changes nothing for later, and a permission that ends before a denial does not win over it.
func TestRulesThatEnd(t *testing.T) {
	now := time.Now()
	short, long := now.Add(2*time.Second), now.Add(time.Hour)
	type change struct {
		deny bool
		end  time.Time
	}
	for name, c := range map[string]struct {
		changes     []change
		then, after bool
	}{
		"a lasting denial stays":            {[]change{{true, time.Time{}}, {true, short}}, false, false},
		"a permission for a lasting denial": {[]change{{true, time.Time{}}, {false, short}}, false, false},
		"a permission for a longer denial":  {[]change{{true, long}, {false, short}}, false, false},
		"a permission for a shorter denial": {[]change{{true, short}, {false, long}}, true, true},
		"a lasting permission is back":      {[]change{{false, time.Time{}}, {true, short}}, false, true},
		"a lasting permission of a denial":  {[]change{{true, long}, {false, time.Time{}}}, true, true},
		"a lasting denial of a permission":  {[]change{{false, time.Time{}}, {true, time.Time{}}}, false, false},
		"a denial alone":                    {[]change{{true, short}}, false, true},
	} {
		rules := control.Rules{Allow: []control.Rule{{Text: "*.sub.test", Source: "config"}}}
		for _, one := range c.changes {
			var err error
			if rules, _, err = With(rules, "x.sub.test", one.deny, now, one.end); err != nil {
				t.Fatal(err)
			}
		}
		for at, want := range map[time.Time]bool{now: c.then, short.Add(time.Second): c.after} {
			if v := decide(Rules{Rules: rules}, Target{Host: "x.sub.test", Port: 443}, at); v.Allowed != want {
				t.Errorf("%s: after %v: %+v", name, at.Sub(now), v)
			}
		}
	}
	rules, _, err := With(control.Rules{}, "keep.test", false, now, time.Time{})
	if err == nil {
		rules, _, err = With(rules, "keep.test", false, now, short)
	}
	if v := decide(Rules{Rules: rules}, Target{Host: "keep.test", Port: 443}, long); err != nil || !v.Allowed {
		t.Errorf("a lasting permission: %+v, %v", v, err)
	}
}

// TestClockSetBack sets the clock back after a permission was given for an hour. The permission has ended, also for the next change and the
// next start: it would be in force until its end comes again.
func TestClockSetBack(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	rules, _, err := With(control.Rules{}, "a.test", false, now, now.Add(time.Hour))
	if err == nil {
		rules, err = Write(dir, rules)
	}
	if v := decide(Rules{Rules: rules}, Target{Host: "a.test", Port: 443}, now.Add(time.Minute)); err != nil || !v.Allowed {
		t.Fatalf("%+v, %v", v, err)
	}
	back := now.AddDate(-1, 0, 0)
	if v := decide(Rules{Rules: rules}, Target{Host: "a.test", Port: 443}, back); v.Allowed {
		t.Errorf("%+v", v)
	}
	if changed, _, err := With(rules, "b.test", false, back, back.Add(time.Hour)); err != nil || len(changed.Allow) != 1 || changed.Allow[0].Text != "b.test" {
		t.Errorf("after another change: %+v, %v", changed, err)
	}
	if begun, err := Begin(dir, control.Rules{}, nil, back); err != nil || len(begun.Allow) != 0 {
		t.Errorf("after another start: %+v, %v", begun, err)
	}
}

// TestCheckVetsAddresses checks addresses that a rule is about, or that an open network reaches without one.
func TestCheckVetsAddresses(t *testing.T) {
	named := Rules{Rules: control.Rules{Allow: []control.Rule{{Text: "0.0.0.0/0:80"}, {Text: "10.0.0.5:443"}, {Text: "169.254.169.254:443"}}}}
	for target, want := range map[string][2]bool{
		"203.0.113.7:80": {true, true}, "10.0.0.5:443": {true, false}, "169.254.169.254": {false, false}, "127.0.0.1:80": {false, false},
	} {
		at, err := ParseTarget(target)
		if err != nil {
			t.Fatal(err)
		}
		for i, rules := range []Rules{named, {Open: true}} {
			c := Check(t.Context(), rules, at, time.Now())
			if c.Allowed != want[i] || c.Spoiled == want[i] {
				t.Errorf("%s: open %v: %+v", target, rules.Open, c)
			}
		}
	}
	if all := Warnings(named.Allow); len(all) != 1 || !strings.HasPrefix(all[0], `rule "169.254.169.254:443" allows nothing`) {
		t.Errorf("%q", all)
	}
}

// TestNamesAreCompared adds rules whose names are written in other ways.
func TestNamesAreCompared(t *testing.T) {
	for _, c := range []struct{ deny, allow string }{
		{"C.test.", "c.test"}, {"*.c.test", "*.C.TEST"}, {"Bücher.test:22", "xn--bcher-kva.test:22"}, {"GET A.test/X", "GET a.test./X"},
	} {
		rules, _, err := With(control.Rules{}, c.deny, true, time.Now(), time.Time{})
		if err == nil {
			rules, _, err = With(rules, c.allow, false, time.Now(), time.Time{})
		}
		if err != nil || len(rules.Deny) != 0 || len(rules.Allow) != 1 {
			t.Errorf("%q, then %q: %+v, %v", c.deny, c.allow, rules, err)
		}
	}
	if same("GET a.test/x", "GET a.test/X") || same("a.test", "a.test:443") || same("*.a.test", "**.a.test") {
		t.Error("other rules are the same")
	}
}

// TestOpenNetwork decides in a network that needs no permission. A refusal of a closed address stays listed, without a command.
func TestOpenNetwork(t *testing.T) {
	now := time.Now()
	rules := Rules{Rules: control.Rules{Deny: []control.Rule{{Text: "*.a.test", Source: live}, {Text: "b.test", Source: "config"}}}, Open: true}
	var records []control.Record
	for i, c := range []struct {
		record  control.Record
		allowed bool
		next    []string
	}{
		{control.Record{Name: "x.a.test", Reason: control.ReasonDenied}, false, []string{"git airlock net allow '*.a.test'"}},
		{control.Record{Name: "b.test", Reason: control.ReasonDenied}, false, []string{"git config --show-origin --get-all airlock.deny"}},
		{control.Record{Name: "c.test", Reason: "address 10.0.0.1 is not public"}, true, []string{}},
		{control.Record{Address: "169.254.169.254", Reason: "address 169.254.169.254 is not public"}, true, []string{}},
		{control.Record{Name: "d.test", Reason: control.ReasonDenied}, true, []string{}},
	} {
		c.record.Kind, c.record.Port, c.record.Time = control.KindRefusal, 443, now.Add(time.Duration(i)*time.Millisecond)
		records = append(records, c.record)
		if v := decide(rules, TargetOf(c.record), now); v.Allowed != c.allowed || v.Allowed == (v.Rule != nil) {
			t.Errorf("%+v: %+v", c.record, v)
		}
		if next := Next(rules, c.record, now); !slices.Equal(next, c.next) {
			t.Errorf("%+v: %q", c.record, next)
		}
	}
	var shown []string
	for _, r := range refusals(records, rules, now.Add(-time.Hour), now, 9) {
		shown = append(shown, r.Name+r.Address)
	}
	if want := []string{"169.254.169.254", "c.test", "b.test", "x.a.test"}; !slices.Equal(shown, want) {
		t.Errorf("%q, want %q", shown, want)
	}
}

// TestFinalRefusals explains refusals that no rule ends. One has a target that the rules allow.
func TestFinalRefusals(t *testing.T) {
	rules := Rules{Rules: control.Rules{Allow: []control.Rule{{Text: "GET a.test/x"}}}}
	for reason, final := range map[string]bool{control.ReasonFinal + "the request is one for a proxy": true, "no rule allows the request": false} {
		for _, method := range []string{"GET", "TRACE"} {
			r := control.Record{Kind: control.KindRefusal, Name: "a.test", Port: 80, Method: method, Path: "/x", Reason: reason}
			now, next := DecideAgain(rules, r, time.Now()), Next(rules, r, time.Now())
			if final && (now.Allowed || now.Rule != nil) || now.Allowed != (!final && method == "GET") || len(next) > 0 == final || len(Widenings(r)) > 0 == final {
				t.Errorf("%s, %s: %+v, %q, %q", reason, method, now, next, Widenings(r))
			}
		}
	}
}

// TestManyRefusedPaths has a record of several requests, whose paths other records name. It proposes no rule about the whole host.
func TestManyRefusedPaths(t *testing.T) {
	rules := Rules{Rules: control.Rules{Allow: []control.Rule{{Text: "GET a.test/x"}}}}
	r := control.Record{Kind: control.KindRefusal, Time: time.Now(), Name: "a.test", Port: 443, Method: "GET", Path: control.OtherPaths, Count: 9}
	if next, shown := Next(rules, r, time.Now()), refusals([]control.Record{r}, rules, time.Time{}, time.Now(), 5); len(next) > 0 || len(shown) > 0 {
		t.Errorf("%q, %+v", next, shown)
	}
}

// TestClosedAddressIsExplained explains a refusal of an address, which the rule about its name does not open.
func TestClosedAddressIsExplained(t *testing.T) {
	rules := Rules{Rules: control.Rules{Allow: []control.Rule{{Text: "db.test:5432"}}}}
	r := control.Record{Kind: control.KindRefusal, Time: time.Now(), Name: "db.test", Port: 5432, Address: "10.0.0.5", Reason: "address 10.0.0.5 is not public"}
	recent := func() int { return len(refusals([]control.Record{r}, rules, time.Time{}, time.Now(), 5)) }
	if next := Next(rules, r, time.Now()); len(next) == 0 || next[0] != "git airlock net allow 'db.test:5432 =10.0.0.5'" || recent() != 1 {
		t.Errorf("%q, %d refusals", next, recent())
	}
	rules.Allow = append(rules.Allow, control.Rule{Text: "db.test:5432 =10.0.0.5"})
	if !DecideAgain(rules, r, time.Now()).Allowed || recent() != 0 {
		t.Error("the rule that was proposed does not help")
	}
}

func TestSuggestions(t *testing.T) {
	for _, c := range []struct {
		target Target
		want   []string
	}{
		{Target{Host: "x.a.example", Port: 443}, []string{"x.a.example", "*.a.example"}},
		{Target{Host: "pypi.org", Port: 443}, []string{"pypi.org", "@pypi", "@balanced"}},
		{Target{Host: "me.github.io", Port: 22}, []string{"me.github.io:22"}},
		{Target{Host: "db.a.example", Port: 5432, At: "10.0.0.5"}, []string{"db.a.example:5432 =10.0.0.5"}},
		{Target{Host: "db.a.example", Port: 443, At: "fd00::5"}, []string{"db.a.example =[fd00::5]"}},
		{Target{Host: "a.example", Port: 443, Method: "GET", Path: "/x", At: "10.0.0.5"}, []string{"GET a.example/x =10.0.0.5", "a.example =10.0.0.5"}},
		{Target{Host: "a.example", Port: 443, Method: "PUT", Path: "/x%20y"}, []string{"PUT a.example/x%20y", "a.example"}},
		{Target{Host: "a.example", Port: 443, Method: "PUT", Path: "/a/../b"}, []string{"a.example"}},
		{Target{Host: "a.example", Port: 443, Method: "GET", Path: "/v*/x"}, []string{"GET a.example/v%2A/x", "a.example"}},
		{Target{Host: "a.example", Port: 443, Method: "M-SEARCH", Path: "/x"}, []string{"M-SEARCH a.example/x", "a.example"}},
		{Target{Host: "a.example", Port: 443, Method: "-X", Path: "/x"}, []string{"a.example/x", "a.example"}},
		{Target{Host: "a.example", Port: 443, Method: "PUT", Path: "/a/b/c..."}, []string{"PUT a.example/a/b/**", "a.example"}},
		{Target{Host: "2001:db8::1", Port: 22, IsAddress: true}, []string{"[2001:db8::1]:22"}},
		{Target{Host: "169.254.169.254", Port: 80, IsAddress: true}, nil},
		{Target{Host: "::1", Port: 80, IsAddress: true}, nil},
		{Target{Host: "10.0.0.5", Port: 80, IsAddress: true}, []string{"10.0.0.5:80"}},
	} {
		got := suggestions(c.target)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.target, got, c.want)
		}
		for _, text := range got {
			var rules control.Rules
			var err error
			if rules.Allow, err = add(nil, []string{text}, ""); err != nil || !decide(Rules{Rules: rules}, c.target, time.Now()).Allowed {
				t.Errorf("%q does not allow %v: %v", text, c.target, err)
			}
		}
	}
	if len(sets.Names()) == 0 {
		t.Error("no sets")
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, text := range []string{"a.test", "a.test:22", "[::1]:443", "::1", "10.0.0.1:80", "[", ":", "a:b:c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseTarget(text)
		if err != nil {
			return
		}
		if target.Port == 0 || target.Host == "" {
			t.Fatalf("%q is %+v", text, target)
		}
		again, err := ParseTarget(target.Host)
		if err != nil || again.Host != target.Host || again.IsAddress != target.IsAddress {
			t.Errorf("%q is %+v, which is %+v: %v", text, target, again, err)
		}
	})
}
