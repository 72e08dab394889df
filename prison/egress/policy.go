package egress

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential"
	"github.com/git-airlock/git-airlock/prison/egress/request"
	"github.com/git-airlock/git-airlock/prison/egress/upstream"
)

// Policy is the set of rules that decides which names and addresses a prison may connect to. The zero value allows none.
type Policy struct {
	Generation uint64 // see [control.Rules]
	// Open and Learn allow every public name that no rule denies; Open allows public addresses as well.
	Open, Learn bool
	// Lockdown refuses everything.
	Lockdown    bool
	Allow, Deny []Rule
	credentials []boundCredential
	proxy       upstream.Proxy // all connections go through it; zero: none
}

// boundCredential is a credential with the requests that get its value. An open network uses no credential, because it does not see
// requests.
type boundCredential struct {
	credential.Credential
	rules []Rule
	limit int  // requests a day; 0: no limit
	base  bool // programs inside may speak HTTP without TLS
}

// about reports whether a credential is for some requests to a name.
func (c boundCredential) about(name string) bool {
	return slices.ContainsFunc(c.rules, func(r Rule) bool { return r.Names(name, 443) })
}

// matches reports whether a request gets the value of a credential.
func (c boundCredential) matches(name, method, path string) bool {
	return slices.ContainsFunc(c.rules, func(r Rule) bool { return r.Names(name, 443) && r.requests.Matches(method, path) })
}

// maxRules bounds the rules of a policy, since each is compared with every name.
const maxRules = 10_000

// NewPolicy reads the rules that are in force at a time. An error names the rule that cannot be read.
func NewPolicy(rules control.Rules, now time.Time) (Policy, error) {
	p := Policy{Generation: rules.Generation, Learn: rules.Learn, Lockdown: rules.Lockdown}
	if n := len(rules.Allow) + len(rules.Deny); n > maxRules {
		return Policy{}, fmt.Errorf("%d rules: at most %d", n, maxRules)
	}
	var err error
	if p.Allow, err = parseRules(rules.Allow, now); err == nil {
		p.Deny, err = parseRules(rules.Deny, now)
	}
	if rules.Proxy != "" {
		var wrong error
		p.proxy, _, wrong = upstream.Parse(rules.Proxy)
		err = errors.Join(err, wrong)
	}
	for _, c := range rules.Credentials {
		b := boundCredential{Credential: credential.Credential{Name: c.Name, Header: c.Header, Format: c.Format, Placeholder: c.Placeholder}, limit: c.Limit, base: c.Base}
		for _, text := range c.Rules {
			r, wrong := ParseRule(text)
			b.rules, err = append(b.rules, r), errors.Join(err, wrong)
		}
		p.credentials = append(p.credentials, b)
	}
	if err != nil {
		return Policy{}, err
	}
	return p, nil
}

// guards reports whether there is a credential for a name. The network then sees each request to the name, and refuses one with another
// credential.
func (p Policy) guards(name string) bool {
	return !p.Open && slices.ContainsFunc(p.credentials, func(c boundCredential) bool { return c.about(name) })
}

// seesAll reports whether the network sees each request to a name, whatever rules allow: no rule can then allow one that is not clear.
func (p Policy) seesAll(name string, port uint16) bool {
	return p.guards(name) || slices.ContainsFunc(p.Deny, func(r Rule) bool { return name != "" && r.Names(name, port) })
}

// leaving returns the port at which a connection to a name leaves this machine. If a credential lets programs speak HTTP without TLS to a
// service, the network still reaches the service over TLS.
func (p Policy) leaving(name string, port uint16) uint16 {
	if port == 80 && !p.Open && slices.ContainsFunc(p.credentials, func(c boundCredential) bool { return c.base && c.about(name) }) {
		return 443
	}
	return port
}

// splitCredentials returns the credentials that a request may have, and the others. A credential must be for the path and, if there is one,
// for the target: a server that copies or moves uses the value for both.
func (p Policy) splitCredentials(name, method, path, target string) (here, elsewhere []credential.Credential) {
	for _, c := range p.credentials {
		if c.matches(name, method, path) && (target == "" || c.matches(name, method, target)) {
			here = append(here, c.Credential)
		} else {
			elsewhere = append(elsewhere, c.Credential)
		}
	}
	return here, elsewhere
}

func parseRules(given []control.Rule, now time.Time) (rules []Rule, err error) {
	for _, g := range given {
		if g.Ended(now) {
			continue
		}
		r, err := ParseRule(g.Text)
		if err != nil {
			return nil, err
		}
		r.source, r.until = clip(g.Source), g.Until
		rules = append(rules, r)
	}
	return rules, nil
}

// Question is about a connection, or about a request if it has a method.
type Question struct {
	Host         string // a canonical name, or an address
	IsAddress    bool   // Host is an address
	Port         uint16
	Method, Path string // the path is percent-encoded
	// At is an address of the name, which some rules may not open; invalid: an address that all rules open.
	At netip.Addr
}

// Ask decides about a connection, or a request over it.
func (p Policy) Ask(q Question) (Decision, error) {
	if q.IsAddress {
		a, err := netip.ParseAddr(q.Host)
		if err != nil {
			return Decision{}, err
		}
		return p.Decide("", netip.AddrPortFrom(a, q.Port)), nil
	}
	d := p.DecideAt(q.Host, netip.AddrPortFrom(netip.Addr{}, q.Port), q.At)
	if !d.Allowed || !d.PerRequest || q.Method == "" {
		return d, nil
	}
	path, err := request.Path(q.Path)
	if err != nil {
		return Decision{}, err
	}
	return p.Request(q.Host, q.Port, q.At, q.Method, path), nil
}

// requestNames returns the names whose requests the network sees. For a rule with a wildcard, it returns the host after the wildcard.
func (p Policy) requestNames() (names []string) {
	if p.Open {
		return nil
	}
	rules := slices.DeleteFunc(slices.Concat(p.Allow, p.Deny), func(r Rule) bool { return !r.Requests() })
	for _, c := range p.credentials {
		rules = append(rules, c.rules...)
	}
	for _, r := range rules {
		if !slices.Contains(names, r.host) {
			names = append(names, r.host)
		}
	}
	return names
}

// Changes returns the time when the first rule ends, or zero if no rule ends.
func (p Policy) Changes() (first time.Time) {
	for _, r := range slices.Concat(p.Allow, p.Deny) {
		if !r.until.IsZero() && (first.IsZero() || r.until.Before(first)) {
			first = r.until
		}
	}
	return first
}

// Decision is the decision about a connection or a request.
type Decision struct {
	Allowed bool
	Rule    Rule   // zero where no rule decided
	Reason  string // of a refusal
	Final   bool   // no other rule would allow it
	closed  bool   // Reason has the address
	Hidden  bool   // a rule permits TLS that does not show the name of its server
	// PerRequest reports that a connection is allowed only for requests that [Policy.Request] allows, each by itself.
	PerRequest bool
}

// Decide decides about a connection to a canonical name, or to an address if the name is empty. It refuses a connection that no rule
// allows. A rule that denies wins over rules that allow. An open network does not see requests, so there a rule that denies some requests
// denies the connection.
func (p Policy) Decide(name string, to netip.AddrPort) Decision {
	return p.DecideAt(name, to, netip.Addr{})
}

// DecideAt is Decide for a connection that leads to an address of the name. A rule that does not open the address does not allow the
// connection, and hides no other rule that does. An address that is invalid is not known yet: a connection to it is allowed if some address
// is.
func (p Policy) DecideAt(name string, to netip.AddrPort, at netip.Addr) Decision {
	to = netip.AddrPortFrom(to.Addr(), p.leaving(name, to.Port()))
	about := func(r Rule) bool {
		if name == "" {
			return r.Addresses(to.Addr(), to.Port())
		}
		return r.Names(name, to.Port())
	}
	whole := func(r Rule) bool { return about(r) && (p.Open || !r.Requests()) }
	if p.Lockdown {
		return Decision{Reason: control.ReasonLockdown}
	}
	if i := slices.IndexFunc(p.Deny, whole); i >= 0 {
		return Decision{Rule: p.Deny[i], Reason: control.ReasonDenied}
	}
	if p.guards(name) && to.Port() != 443 {
		return Decision{Reason: "a host with a credential is reached over TLS at port 443 only", Final: true}
	}
	some := p.seesAll(name, to.Port()) || slices.ContainsFunc(p.Deny, about)
	allows := func(r Rule) bool { return about(r) && r.opens(at) }
	if i := slices.IndexFunc(p.Allow, func(r Rule) bool { return allows(r) && !r.Requests() }); i >= 0 {
		hidden := slices.ContainsFunc(p.Allow, func(r Rule) bool { return r.hidden && allows(r) })
		return Decision{Allowed: true, Rule: p.Allow[i], PerRequest: some, Hidden: hidden}
	}
	if (p.Open || p.Learn && name != "") && (Rule{}).opens(at) {
		return Decision{Allowed: true, PerRequest: some}
	}
	if i := slices.IndexFunc(p.Allow, allows); i >= 0 {
		return Decision{Allowed: true, Rule: p.Allow[i], PerRequest: true}
	}
	if at.IsValid() {
		if d := p.Decide(name, to); d.Allowed {
			return Decision{Rule: d.Rule, Reason: Vet(at).Error(), closed: true}
		}
	}
	return Decision{Reason: control.ReasonNoRule}
}

// vet returns an error for an address to which a connection must not lead, although rules may allow its name.
func (p Policy) vet(name string, to netip.AddrPort, at netip.Addr) error {
	if d := p.DecideAt(name, to, at); !d.Allowed {
		return errors.New(d.Reason)
	}
	return nil
}

// Entrusts reports whether a proxy may look a name up: rules allow the name, and no private address of it.
func (p Policy) Entrusts(name string, port uint16) bool {
	about := func(r Rule) bool { return r.Names(name, port) }
	return slices.ContainsFunc(p.Allow, about) && !slices.ContainsFunc(p.Allow, func(r Rule) bool { return about(r) && r.addresses.IsValid() })
}

const reasonNoRule = "no rule allows the request"

// Request decides about a request on a connection with [Decision.PerRequest], to an address as in [Policy.DecideAt]. path is the result of
// [request.Path]. A rule that denies applies to every way in which a server may read the request. A rule that allows applies only to the
// exact request.
func (p Policy) Request(name string, port uint16, at netip.Addr, method, path string) Decision {
	port = p.leaving(name, port)
	denies := func(r Rule) bool { return r.Names(name, port) && r.requests.Denies(method, path) }
	allows := func(r Rule) bool { return r.Names(name, port) && r.requests.Matches(method, path) && r.opens(at) }
	if p.Lockdown {
		return Decision{Reason: control.ReasonLockdown}
	}
	if err := request.CheckMethod(method); err != nil {
		return Decision{Reason: err.Error(), Final: p.seesAll(name, port)}
	}
	if i := slices.IndexFunc(p.Deny, denies); i >= 0 {
		return Decision{Rule: p.Deny[i], Reason: control.ReasonDeniedRequest}
	}
	if i := slices.IndexFunc(p.Allow, allows); i >= 0 {
		return Decision{Allowed: true, Rule: p.Allow[i], PerRequest: true}
	}
	if p.Learn && (Rule{}).opens(at) {
		return Decision{Allowed: true, PerRequest: true}
	}
	return Decision{Reason: reasonNoRule}
}

// Opaque reports whether the network only copies the bytes of connections that a rule is about, and sees no requests. It sees plain HTTP to
// names, and requests over TLS where it decides about each one. A rule without a port is judged by HTTPS, and one with a wildcard by a name
// that no other rule names.
func (p Policy) Opaque(r Rule) bool {
	const label = "\x00."
	name, port := strings.Repeat(label, int(r.before))+r.host, cmp.Or(r.port, 443)
	if p.Open || !r.IsName() || port == 80 {
		return p.Open || !r.IsName()
	}
	p.Lockdown = false // the rules decide again after it
	d := p.DecideAt(name, netip.AddrPortFrom(netip.Addr{}, port), r.addresses.Addr())
	return !d.PerRequest && (d.Allowed || !r.Requests() && !p.seesAll(name, port))
}

// Covers reports whether a rule allows a name at some port. It ignores rules that deny.
func (p Policy) Covers(name string) bool {
	return p.Learn || p.Open || slices.ContainsFunc(p.Allow, func(r Rule) bool { return r.about(name) })
}

// label returns the rule that decided in the form of [control.Record].
func (d Decision) label() string {
	if d.Rule.text == "" || d.Rule.source == "" {
		return d.Rule.text
	}
	return d.Rule.text + " (" + d.Rule.source + ")"
}

// record returns the record of a policy that comes into force.
func (p Policy) record() control.Record {
	text := fmt.Sprintf("rules: %d allow, %d deny", len(p.Allow), len(p.Deny))
	if p.Lockdown {
		text = "lockdown"
	}
	return control.Record{Kind: control.KindPolicy, Time: time.Now().UTC(), Rule: fmt.Sprintf("generation %d", p.Generation), Reason: text}
}
