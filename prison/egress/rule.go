package egress

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/prefix"
	"github.com/git-airlock/git-airlock/prison/egress/request"
	"github.com/git-airlock/git-airlock/prison/egress/tenants"

	"golang.org/x/net/publicsuffix"
)

// wildcard is how many labels may stand before the host of a rule.
type wildcard int

const (
	noLabel   wildcard = iota // HOST
	oneLabel                  // *.HOST
	anyLabels                 // **.HOST
)

// standardPorts are the ports of a rule without a port: HTTP and HTTPS.
var standardPorts = []uint16{80, 443}

// Rule describes connections to a name, or, if it has no name, to the addresses of a prefix. A [Policy] allows or denies them.
//
// Its text is [METHOD,...] HOST[:PORT][/PATH] [=CIDR] [ech], with HOST a name, *.NAME (one label before it) or **.NAME (one or
// more), or CIDR:PORT. A rule with methods or a path is about requests: see [request.Pattern].
type Rule struct {
	text   string // with single spaces
	source string // where people find the rule, see [control.Rule]
	before wildcard
	host   string
	port   uint16 // 0: the standard ports
	// requests describes the requests to the name that the rule is about.
	requests request.Pattern
	// addresses are private addresses to which the name may lead; without a name, the addresses that the rule is about.
	addresses netip.Prefix
	// shared is the result of Shared.
	shared string
	// hidden permits TLS clients to encrypt the name of the server.
	hidden bool
	until  time.Time // the end of the rule; zero: never
}

// ParseRule reads a rule. It refuses a public suffix such as "com", and all names below one, such as "*.com".
func ParseRule(text string) (Rule, error) {
	fields := strings.Fields(text)
	r := Rule{text: strings.Join(fields, " ")}
	if len(fields) == 0 {
		return Rule{}, errors.New("an empty rule: want " + ruleForm)
	}
	methods := ""
	if len(fields) > 1 && request.IsMethods(fields[0]) && fields[1] != encryptedOption && fields[1][0] != '=' {
		methods, fields = fields[0], fields[1:]
	}
	target, path := splitPath(fields[0])
	_, bare, url := strings.Cut(fields[0], "://")
	err := r.parseTarget(target)
	if url {
		err = fmt.Errorf("a rule has no scheme: write %s", clip(strings.TrimRight(bare, "/")))
	} else if err == nil {
		err = r.parseRequests(methods, path)
	}
	options := fields[1:]
	if len(options) > 0 && options[0] != encryptedOption && err == nil {
		err = r.parseAddresses(options[0])
		options = options[1:]
	}
	if err == nil && len(options) > 0 {
		err = r.parseEncrypted(options)
	}
	if err != nil {
		return Rule{}, fmt.Errorf("rule %q: %w", clip(text), err)
	}
	return r, nil
}

// ruleForm is the form of a rule, for messages.
const ruleForm = "[METHOD,...] HOST[:PORT][/PATH] [=CIDR] [ech] or CIDR:PORT"

// splitPath separates HOST[:PORT] from /PATH. The slash in an address prefix does not begin a path.
func splitPath(target string) (host, path string) {
	i := strings.IndexByte(target, '/')
	if i < 0 || IsAddress(strings.Trim(target[:i], "[]")) {
		return target, ""
	}
	return target[:i], target[i:]
}

// parseRequests reads the methods and the path of a rule, after its target.
func (r *Rule) parseRequests(methods, path string) (err error) {
	if methods == "" && path == "" {
		return nil
	}
	if r.host == "" {
		return errors.New("methods and paths need a name")
	}
	if r.port != 0 && !slices.Contains(standardPorts, r.port) {
		return errors.New("requests are seen at the ports 80 and 443 only")
	}
	r.requests, err = request.Parse(methods, path)
	return err
}

// Requests reports whether a rule is about requests of some methods or paths, rather than about connections.
func (r Rule) Requests() bool { return !r.requests.Every() }

// DeniesAll reports whether a rule, as one that denies, is about each request over HTTPS, or at the port that it names, that another rule
// about a name describes. It may miss that, see [request.Pattern.DeniesAll].
func (r Rule) DeniesAll(other Rule) bool {
	const label = "\x00." // no name has such a label, so only a wildcard describes it
	name := strings.Repeat(label, int(other.before)) + other.host
	return other.IsName() && r.Names(name, cmp.Or(other.port, 443)) && r.requests.DeniesAll(other.requests)
}

// NarrowestRule returns the text of the rule that describes a request to a name and as few others as possible, see [request.Narrowest]. The
// text has no single quote. ok is false if only a rule about the connections to the name describes the request.
func NarrowestRule(method, name, path string) (text string, ok bool) {
	methods, pattern, ok := request.Narrowest(method, path)
	text = strings.TrimPrefix(methods+" "+name+pattern, " ")
	r, err := ParseRule(text)
	return text, ok && err == nil && r.Requests()
}

// Hides reports whether the rule permits an encrypted client hello.
func (r Rule) Hides() bool { return r.hidden }

// encryptedOption permits an encrypted client hello (RFC 9849), whose name only the server can read.
const encryptedOption = "ech"

// parseEncrypted reads the options after the addresses. Only "ech" is known.
func (r *Rule) parseEncrypted(options []string) error {
	if len(options) != 1 || options[0] != encryptedOption || r.host == "" {
		return errors.New("want " + ruleForm)
	}
	if r.Requests() {
		return errors.New("ech hides the name of the server, and requests are not seen then")
	}
	r.hidden = true
	return nil
}

func (r Rule) String() string { return r.text }

// Shared returns a suffix that the rule covers and under which many tenants have their own names, such as "github.io", or a domain above
// such suffixes; empty if none is known.
func (r Rule) Shared() string { return r.shared }

// parseTarget reads HOST[:PORT] or CIDR:PORT.
func (r *Rule) parseTarget(text string) (err error) {
	host, port := text, ""
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		host, port = text[:i], text[i+1:]
		if r.port, err = prefix.ParsePort(port); err != nil {
			return err
		}
	}
	if addresses, ok := prefix.Parse(host); ok {
		if port == "" {
			return errors.New("addresses need a port")
		}
		r.addresses = addresses
		return nil
	}
	switch name, ok := strings.CutPrefix(host, "**."); {
	case ok:
		r.before, host = anyLabels, name
	case strings.HasPrefix(host, "*."):
		r.before, host = oneLabel, host[2:]
	}
	if r.host, err = Canonical(host); err != nil {
		return err
	}
	suffix, icann := publicsuffix.PublicSuffix(r.host)
	if suffix != r.host {
		if r.before == anyLabels && icann { // else it is one tenant's
			r.shared = tenants.Above(r.host)
		}
		return nil
	}
	switch {
	case r.before == noLabel && icann:
		return fmt.Errorf("%s is a public suffix, not a host", host)
	case r.before == noLabel: // one host: a private suffix, or a name without a dot in a local network
	case icann, !strings.Contains(suffix, "."):
		return fmt.Errorf("%s covers all names of a public suffix", host)
	default:
		r.shared = suffix
	}
	return nil
}

// parseAddresses reads =CIDR.
func (r *Rule) parseAddresses(text string) error {
	text, ok := strings.CutPrefix(text, "=")
	addresses, isPrefix := prefix.Parse(text)
	if !ok || !isPrefix || r.host == "" {
		return errors.New("want =CIDR after a name")
	}
	r.addresses = addresses
	return nil
}

// Names reports whether the rule is about a canonical name at a port.
func (r Rule) Names(name string, port uint16) bool {
	if r.host == "" || !r.hasPort(port) {
		return false
	}
	before, ok := strings.CutSuffix(name, r.host)
	if !ok {
		return false
	}
	if r.before == noLabel {
		return before == ""
	}
	before, ok = strings.CutSuffix(before, ".")
	return ok && before != "" && (r.before == anyLabels || !strings.Contains(before, "."))
}

// IsName reports whether the rule is about names, and not about addresses.
func (r Rule) IsName() bool { return r.host != "" }

// Addresses reports whether the rule has no name and is about an address at a port.
func (r Rule) Addresses(a netip.Addr, port uint16) bool {
	return r.host == "" && r.hasPort(port) && r.addresses.Contains(a.Unmap())
}

// AboutAddress is [Rule.Addresses] for the text of an address.
func (r Rule) AboutAddress(address string, port uint16) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && r.Addresses(a, port)
}

// about reports whether the rule is about a name at some port.
func (r Rule) about(name string) bool {
	return r.Names(name, cmp.Or(r.port, standardPorts[0]))
}

func (r Rule) hasPort(port uint16) bool {
	if r.port == 0 {
		return slices.Contains(standardPorts, port)
	}
	return r.port == port
}

// Vet returns an error for an address to which the rule's name may not lead: one that is not public, unless the rule opens it. A rule can open
// only addresses of private networks.
func (r Rule) Vet(a netip.Addr) error {
	if r.addresses.IsValid() && r.addresses.Contains(a.Unmap()) && a.IsPrivate() {
		return nil
	}
	return Vet(a)
}

// opens reports whether the rule's name may lead to an address. An address that is not known yet may be one.
func (r Rule) opens(a netip.Addr) bool { return !a.IsValid() || r.Vet(a) == nil }
