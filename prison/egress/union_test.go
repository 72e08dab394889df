package egress

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// A modelRule is a rule as its documentation describes it: a set of requests to names, or of connections to addresses.
type modelRule struct {
	host, opened, method, path string // host is a prefix of addresses if it has a slash
	port                       uint16 // 0: the standard ports
}

func (r modelRule) String() string {
	text := strings.TrimSpace(r.method + " " + r.host)
	if r.port != 0 {
		text += fmt.Sprintf(":%d", r.port)
	}
	if text += r.path; r.opened != "" {
		text += " =" + r.opened
	}
	return text
}

// modelCall is a request at an address. Without a name, it is sent to the address itself.
type modelCall struct {
	name, method, path string
	port               uint16
	at                 netip.Addr
}

// about reports whether a rule is about a call, whatever its address.
func (r modelRule) about(c modelCall) bool {
	if r.port != c.port && (r.port != 0 || c.port != 80 && c.port != 443) {
		return false
	}
	if strings.Contains(r.host, "/") {
		return c.name == "" && netip.MustParsePrefix(r.host).Contains(c.at)
	}
	want, have := strings.Split(r.host, "."), strings.Split(c.name, ".")
	switch want[0] {
	case "*":
		want, have = want[1:], have[min(1, len(have)):]
	case "**":
		want = want[1:]
		if len(have) <= len(want) {
			return false
		}
		have = have[len(have)-len(want):]
	}
	return c.name != "" && slices.Equal(want, have) && (r.method == "" || r.method == c.method) && (r.path == "" || r.path == c.path)
}

// leads reports whether a rule opens the address of a call: every rule opens public ones.
func (r modelRule) leads(c modelCall) bool {
	opened := r.opened
	if strings.Contains(r.host, "/") {
		opened = r.host
	}
	return !c.at.IsPrivate() || opened != "" && netip.MustParsePrefix(opened).Contains(c.at)
}

// modelAllows is the model: what is allowed is the union of what each rule allows, without what a rule denies.
func modelAllows(allow, deny []modelRule, learn bool, c modelCall) bool {
	if slices.ContainsFunc(deny, func(r modelRule) bool { return r.about(c) }) {
		return false
	}
	return learn && c.name != "" && !c.at.IsPrivate() || slices.ContainsFunc(allow, func(r modelRule) bool { return r.about(c) && r.leads(c) })
}

var (
	modelNames     = []string{"a.test", "x.a.test", "y.x.a.test", "b.test"}
	modelAddresses = []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.2.0.1")}
	modelMethods   = []string{"GET", "POST"}
	modelPaths     = []string{"/x", "/y"}
)

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func modelRules(r *rand.Rand) (rules []modelRule) {
	for range r.IntN(5) {
		m := modelRule{host: pick(r, "a.test", "x.a.test", "*.a.test", "**.a.test", "b.test", "10.1.0.0/16", "192.0.2.0/24"), port: pick[uint16](r, 0, 0, 443, 22)}
		switch {
		case strings.Contains(m.host, "/"):
			m.port = pick[uint16](r, 443, 22)
		case m.port != 22:
			m.method, m.path = pick(r, "", "", "GET", "POST"), pick(r, "", "", "/x", "/y")
			fallthrough
		default:
			m.opened = pick(r, "", "", "10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24")
		}
		rules = append(rules, m)
	}
	return rules
}

func texts(rules []modelRule) (all []string) {
	for _, r := range rules {
		all = append(all, r.String())
	}
	return all
}

// TestRulesAreAUnion compares policies with the model, for all connections and requests of a small world.
func TestRulesAreAUnion(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		allow, deny := modelRules(r), modelRules(r)
		if r.IntN(2) == 0 {
			deny = nil
		}
		p := Policy{Allow: mustParse(t, texts(allow)...), Deny: mustParse(t, texts(deny)...), Learn: r.IntN(8) == 0}
		for _, name := range append(modelNames, "") {
			for _, at := range modelAddresses {
				for _, port := range []uint16{80, 443, 22} {
					if problem := compare(p, allow, deny, name, netip.AddrPortFrom(at, port)); problem != "" {
						t.Fatalf("allow %q, deny %q, learn %v: %s", texts(allow), texts(deny), p.Learn, problem)
					}
				}
			}
		}
	}
}

// compare returns a difference between a policy and the model in the decisions about a connection and each request over it.
func compare(p Policy, allow, deny []modelRule, name string, to netip.AddrPort) string {
	d, some := p.DecideAt(name, to, to.Addr()), false
	for _, method := range modelMethods {
		for _, path := range modelPaths {
			c := modelCall{name, method, path, to.Port(), to.Addr()}
			got, want := d.Allowed, modelAllows(allow, deny, p.Learn, c)
			if d.Allowed && d.PerRequest {
				got = p.Request(name, to.Port(), to.Addr(), method, path).Allowed
			}
			if some = some || want; got != want {
				return fmt.Sprintf("%+v: %v, want %v (%+v)", c, got, want, d)
			}
		}
	}
	if first := p.Decide(name, to); some && !first.Allowed {
		return fmt.Sprintf("%s %v is refused before its address is known: %s", name, to, first.Reason)
	}
	return ""
}

// TestUnionOfTwoRules has the pairs that people write: each rule allows what it allows alone, in any order.
func TestUnionOfTwoRules(t *testing.T) {
	to := netip.MustParseAddrPort("198.18.0.1:443")
	for _, c := range []struct {
		rules            []string
		at               string
		whole, get, post bool // as connection, and as requests to /x
	}{
		{[]string{"a.test", "a.test =10.1.0.0/16"}, "10.1.0.1", true, true, true},
		{[]string{"a.test", "a.test =10.1.0.0/16"}, "10.2.0.1", false, false, false},
		{[]string{"a.test", "GET a.test =10.1.0.0/16"}, "10.1.0.1", false, true, false},
		{[]string{"a.test", "GET a.test =10.1.0.0/16"}, "192.0.2.1", true, true, true},
		{[]string{"GET a.test =10.1.0.0/16", "POST a.test =10.2.0.0/16"}, "10.2.0.1", false, false, true},
		{[]string{"GET a.test/x", "192.0.2.0/24:443"}, "192.0.2.1", false, true, false},
	} {
		for range 2 {
			p, at := Policy{Allow: mustParse(t, c.rules...)}, netip.MustParseAddr(c.at)
			d := p.DecideAt("a.test", to, at)
			get, post := d.Allowed && p.Request("a.test", 443, at, "GET", "/x").Allowed, d.Allowed && p.Request("a.test", 443, at, "POST", "/x").Allowed
			if whole := d.Allowed && !d.PerRequest; whole != c.whole || !whole && (get != c.get || post != c.post) {
				t.Errorf("%q at %s: %+v, GET %v, POST %v", c.rules, c.at, d, get, post)
			}
			slices.Reverse(c.rules)
		}
	}
	if p := (Policy{Allow: mustParse(t, "a.test", "a.test ech")}); !p.Decide("a.test", to).Hidden {
		t.Error("a rule hides a later one with ech")
	}
}
