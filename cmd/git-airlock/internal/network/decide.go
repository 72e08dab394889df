package network

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/request"
	"github.com/git-airlock/git-airlock/prison/egress/sets"
	"github.com/git-airlock/git-airlock/words"
)

// Target is a host and a port that a prison may want to reach.
type Target struct {
	Host      string // a canonical name, or an address
	Port      uint16
	IsAddress bool // Host is an address
	// Method and Path are of a request, and empty for a connection. The path is percent-encoded and has no query.
	Method, Path string
	// At is the address to which the name has led; empty if that is not known.
	At string
	// Encrypted reports that the client hello is encrypted.
	Encrypted bool
}

func (t Target) String() string { return t.Host + ":" + strconv.Itoa(int(t.Port)) }

func (t Target) question() egress.Question {
	return egress.Question{Host: t.Host, IsAddress: t.IsAddress, Port: t.Port, Method: t.Method, Path: t.Path, At: egress.AddressOf(t.At)}
}

// ParseTarget reads HOST[:PORT]. The port is 443 unless it is named.
func ParseTarget(text string) (Target, error) {
	host, port, named := strings.Cut(text, ":")
	if strings.Count(text, ":") > 1 { // an IPv6 address, in brackets if it has a port
		at := strings.LastIndex(text, "]:")
		if named = at >= 0; named {
			host, port = text[:at+1], text[at+2:]
		} else {
			host = text
		}
		inner, bracketed := strings.CutPrefix(host, "[")
		host = strings.TrimSuffix(inner, "]")
		if bracketed != strings.HasSuffix(inner, "]") {
			return Target{}, fmt.Errorf("%q is not HOST[:PORT]", clip(text))
		}
	}
	t := Target{Port: 443}
	if named {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return t, fmt.Errorf("%q is not HOST[:PORT]", clip(text))
		}
		t.Port = uint16(n)
	}
	if egress.IsAddress(host) {
		t.Host, t.IsAddress = host, true
		return t, nil
	}
	name, err := egress.Canonical(host)
	if err != nil {
		return t, fmt.Errorf("%q is not HOST[:PORT]: %w", clip(text), err)
	}
	t.Host = name
	return t, nil
}

// ForRequest returns the target for a request to the same host. path is what follows the host in an address that a person types.
func (t Target) ForRequest(method, path string) Target {
	t.Method, t.Path = method, request.Sent(path)
	return t
}

// Answer reports whether rules allow a target, and why.
type Answer struct {
	Allowed bool
	Rule    *control.Rule // that decided; nil if none did
	Reason  string        // of a refusal, and of a permission without a rule
}

func decide(rules Rules, t Target, now time.Time) Answer {
	policy, err := policyOf(rules, now)
	if err != nil {
		return Answer{Reason: err.Error()}
	}
	d, err := policy.Ask(t.question())
	if err != nil {
		return Answer{Reason: err.Error()}
	}
	v := Answer{Allowed: d.Allowed, Reason: d.Reason, Rule: original(rules.Rules, d)}
	if t.Encrypted && v.Allowed && !d.Hidden && !d.PerRequest && !rules.Open {
		return Answer{Reason: control.ReasonEncrypted}
	}
	switch {
	case rules.Lockdown:
		v.Reason = "lockdown: everything is refused"
	case v.Allowed && v.Rule == nil && rules.Open:
		v.Reason = "no rule is about it, and the network is open"
	case v.Allowed && v.Rule == nil:
		v.Reason = "no rule is about it, and " + learnKey + " allows all public hosts"
	}
	return v
}

// policyOf returns the policy of rules as the network of a prison has it.
func policyOf(rules Rules, now time.Time) (egress.Policy, error) {
	policy, err := egress.NewPolicy(rules.Rules, now)
	policy.Open = rules.Open
	return policy, err
}

// original returns the rule that decided, with its whole source.
func original(rules control.Rules, d egress.Decision) *control.Rule {
	among := rules.Deny
	if d.Allowed {
		among = rules.Allow
	}
	for _, r := range among {
		if r.Text == d.Rule.String() {
			return &r
		}
	}
	return nil
}

func about(r control.Rule, t Target) bool {
	parsed, err := egress.ParseRule(r.Text)
	if err != nil || parsed.Requests() {
		return false
	}
	return t.IsAddress && parsed.AboutAddress(t.Host, t.Port) || !t.IsAddress && parsed.Names(t.Host, t.Port)
}

// Outlasts reports whether a rule is in force for longer than another one.
func Outlasts(r, other control.Rule) bool {
	return !other.Until.IsZero() && (r.Until.IsZero() || r.Until.After(other.Until))
}

// DeniedBy returns a rule that denies all that another rule allows, connections or requests; nil if none is known to.
func DeniedBy(rules control.Rules, allow control.Rule, now time.Time) *control.Rule {
	if by := Decides(control.Rules{Deny: rules.Deny}, allow, true, now); by != nil {
		return by
	}
	allowed, err := egress.ParseRule(allow.Text)
	for _, r := range rules.Deny {
		if denial, wrong := egress.ParseRule(r.Text); err == nil && wrong == nil && !r.Ended(now) && denial.DeniesAll(allowed) {
			return &r
		}
	}
	return nil
}

// DeniedMethods returns the parts of a rule about requests that other rules deny: the rule for each method that is denied, and the denial.
func DeniedMethods(rules control.Rules, allow control.Rule, now time.Time) (parts []string, by []control.Rule) {
	methods, rest, ok := strings.Cut(allow.Text, " ")
	if !ok || !request.IsMethods(methods) {
		return nil, nil
	}
	for method := range strings.SplitSeq(methods, ",") {
		part := control.Rule{Text: method + " " + rest}
		if denial := DeniedBy(rules, part, now); denial != nil {
			parts, by = append(parts, part.Text), append(by, *denial)
		}
	}
	return parts, by
}

// Decides returns the rule that denies (or allows, if denies is false) what another rule is about. That is a rule with the same text, or
// a rule about the host and port that the other rule names. Of several rules, it is the one that lasts longest.
func Decides(rules control.Rules, other control.Rule, denies bool, now time.Time) *control.Rule {
	among := rules.Allow
	if denies {
		among = rules.Deny
	}
	name, port, named := strings.Cut(other.Text, ":")
	if !named {
		port = "443"
	}
	t, err := ParseTarget(name + ":" + port)
	connections := err == nil && !strings.ContainsAny(other.Text, "/ ")
	var longest *control.Rule
	for _, r := range among {
		if !r.Ended(now) && (same(r.Text, other.Text) || connections && about(r, t)) && (longest == nil || Outlasts(r, *longest)) {
			longest = &r
		}
	}
	return longest
}

// StillReached returns what a network that needs no permission still reaches of the hosts that a rule denies; empty if there is nothing.
func StillReached(rules Rules, denial control.Rule) string {
	parsed, err := egress.ParseRule(denial.Text)
	switch {
	case err != nil || !parsed.IsName():
		return ""
	case rules.Open:
		return "other ports of " + denial.Text + ", and its addresses without the name or by another name"
	case rules.Learn:
		return "other ports of " + denial.Text
	}
	return ""
}

// mostNamed is how many rules [Rules.DeniedByName] names.
const mostNamed = 5

// DeniedByName returns a sentence on the denials of an open network that hold only for a name, or nothing if there are none.
func (rules Rules) DeniedByName(now time.Time) []string {
	var names []string
	for _, r := range rules.Deny {
		if rules.Open && !r.Ended(now) && StillReached(rules, r) != "" {
			names = append(names, r.Text)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"an open network refuses some hosts by name only (" + words.List(words.Unique(names), mostNamed) +
		"): their other ports are still reached, and their addresses without the name or by another name"}
}

// Opaque reports whether the network cannot see the contents of what a rule allows, see [egress.Policy.Opaque].
func Opaque(rules Rules, r control.Rule, now time.Time) bool {
	policy, err := policyOf(rules, now)
	parsed, wrong := egress.ParseRule(r.Text)
	return err != nil || wrong != nil || policy.Opaque(parsed)
}

// Address is an address of a name.
type Address struct {
	Text string
	Err  error // why a prison must not be led there; nil if it may
}

// Checked is the answer of rules about a target, with the addresses of its name.
type Checked struct {
	Answer
	Addresses []Address
	Spoiled   bool // the rules allow the target, but a prison must not be led to it or to its addresses
}

// Check decides about a target as the network of a prison does. It looks a name up only if a rule allows the name. If a prison must not be
// led to the target, or to one of its addresses, Check does not allow the target.
func Check(ctx context.Context, rules Rules, t Target, now time.Time) Checked {
	c := Checked{Answer: decide(rules, t, now)}
	if !c.Allowed {
		return c
	}
	var err error
	if t.IsAddress {
		var rule egress.Rule
		if c.Rule != nil {
			rule, _ = egress.ParseRule(c.Rule.Text) // it was found by what it is about
		}
		err = vet(rule, t.Host)
	} else if policy, invalid := policyOf(rules, now); invalid != nil {
		err = invalid
	} else {
		c.Addresses, err = lookUp(ctx, policy, t.question())
		if err != nil && rules.Proxy != "" && policy.Entrusts(t.Host, t.Port) { // the proxy looks it up
			c.Addresses, err = nil, nil
		} else if err != nil {
			err = fmt.Errorf("the look-up failed: %w", err)
		}
		if i := slices.IndexFunc(c.Addresses, func(a Address) bool { return a.Err != nil }); i >= 0 {
			err = c.Addresses[i].Err
		}
	}
	if err != nil {
		c.Allowed, c.Spoiled, c.Reason = false, true, err.Error()
	}
	return c
}

// Void returns why a rule about a single address allows nothing; nil for other rules.
func Void(r control.Rule) error {
	t, err := ParseTarget(r.Text)
	if err != nil || !t.IsAddress {
		return nil
	}
	rule, err := egress.ParseRule(r.Text)
	if err != nil {
		return err
	}
	return vet(rule, t.Host)
}

// suggestions returns the rules that would allow a target, the narrowest first. It leaves out a wildcard below a name where strangers can
// get names of their own. For an address that no rule can open there are none.
func suggestions(t Target) (rules []string) {
	if t.IsAddress && Void(control.Rule{Text: exact(t)}) != nil {
		return nil
	}
	if narrow := narrowRequest(t); narrow != "" {
		rules = append(rules, narrow)
	}
	rules = append(rules, exact(t))
	if t.IsAddress {
		return rules
	}
	if t.Encrypted { // sets and wildcards have no rule with the option
		return []string{exact(t) + privateSuffix(t) + " ech"}
	}
	if private := privateSuffix(t); private != "" {
		for i := range rules {
			rules[i] += private
		}
		return rules
	}
	var fitting []string
	for _, set := range sets.Names() {
		members, err := sets.Expand(set)
		if err != nil {
			continue
		}
		if d, err := (egress.Policy{Allow: members}).Ask(t.question()); err == nil && d.Allowed {
			fitting = append(fitting, set)
		}
	}
	slices.SortStableFunc(fitting, func(a, b string) int { return size(a) - size(b) })
	rules = append(rules, fitting...)
	_, parent, _ := strings.Cut(t.Host, ".")
	if wide, err := egress.ParseRule("*." + parent + portSuffix(t)); err == nil && wide.Shared() == "" && strings.Contains(parent, ".") {
		rules = append(rules, wide.String())
	}
	return rules
}

// privateSuffix returns the part of a rule that opens the private address of a target; empty if it has none.
func privateSuffix(t Target) string {
	switch {
	case !egress.IsPrivate(t.At):
		return ""
	case strings.Contains(t.At, ":"):
		return " =[" + t.At + "]"
	}
	return " =" + t.At
}

// exact returns the rule about nothing but a target.
func exact(t Target) string {
	switch {
	case t.IsAddress && strings.Contains(t.Host, ":"):
		return "[" + t.Host + "]:" + strconv.Itoa(int(t.Port))
	case t.IsAddress:
		return t.String()
	}
	return t.Host + portSuffix(t)
}

// narrowRequest returns the rule about nothing but the request of a target, or as little more as possible. The rule is empty if the target
// is a connection, or if only a rule about the host helps: that is so for a port whose requests are not seen, and for a path or a method
// that servers read in different ways.
func narrowRequest(t Target) string {
	text, ok := egress.NarrowestRule(t.Method, t.Host, t.Path)
	if !ok || !slices.Contains([]uint16{80, 443}, t.Port) {
		return ""
	}
	return text
}

// portSuffix returns the port as a rule names it: nothing for those of HTTP and HTTPS.
func portSuffix(t Target) string {
	if t.Port == 80 || t.Port == 443 {
		return ""
	}
	return ":" + strconv.Itoa(int(t.Port))
}
