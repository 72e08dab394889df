package ui

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/words"
)

// NetworkDocument is version 1 of what net --json prints.
type NetworkDocument struct {
	Version    int           `json:"version"`
	Network    string        `json:"network"`
	Running    bool          `json:"running"`
	Generation uint64        `json:"generation"`
	InForce    uint64        `json:"in_force"` // the generation that the running network uses
	Lockdown   bool          `json:"lockdown"`
	Learn      bool          `json:"learn"`
	Proxy      string        `json:"proxy"` // that all connections go through; empty for none
	Allow      []NetworkRule `json:"allow"`
	Deny       []NetworkRule `json:"deny"`
	Flows      []NetworkFlow `json:"flows"`
	Admitted   uint64        `json:"admitted"`
	Refused    uint64        `json:"refused"`
	Refusals   []Refused     `json:"refusals"`
	Failure    string        `json:"failure,omitempty"`
	Weaker     []string      `json:"-"` // sentences on what the rules do not refuse

	MoreRefusals int `json:"more_refusals"` // further refused hosts

	Credentials []NetworkCredential `json:"credentials"`

	FailingProxy *FailingProxy `json:"failing_proxy"` // null unless the last connection through the proxy failed

	RefusedCertificate *RefusedCertificate `json:"refused_certificate"` // null if there is none
}

// RefusedCertificate is a connection whose program did not accept the network's certificate, with the command that explains
// what would make it work.
type RefusedCertificate struct {
	Seq    uint64    `json:"seq"`
	Host   string    `json:"host"`
	Port   uint16    `json:"port"`
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
	Next   Commands  `json:"next"`
}

// refusedCertificate prints a connection whose program did not accept the network's certificate.
func (p *statusText) refusedCertificate(c *RefusedCertificate) {
	if c == nil {
		return
	}
	p.line("refused", "%s: %s, %s", p.paint.Red(HostPort(c.Host, c.Port)), c.Reason, ago(c.Time, p.now))
	for _, command := range c.Next {
		p.next(command)
	}
}

// FailingProxy is a proxy through which the last connection failed.
type FailingProxy struct {
	Proxy  string    `json:"proxy"`  // its URL, without the password
	Reason string    `json:"reason"` // begins with the cause
	Target string    `json:"target"` // HOST:PORT of the connection
	Time   time.Time `json:"time"`
	Next   Commands  `json:"next"`
}

// Text describes the failure, with the cause in front.
func (f FailingProxy) Text(now time.Time) string {
	return fmt.Sprintf("%s (%s, for %s, %s)", f.Reason, f.Proxy, f.Target, ago(f.Time, now))
}

// failingProxy prints a proxy through which the last connection failed, with what to do.
func (p *statusText) failingProxy(f *FailingProxy) {
	if f == nil {
		return
	}
	p.alarm("proxy", "%s", f.Text(p.now))
	for _, command := range f.Next {
		p.next(command)
	}
}

// NetworkCredential is a credential whose value stays outside.
type NetworkCredential struct {
	Name      string     `json:"name"`
	Source    string     `json:"source"`
	Hosts     string     `json:"hosts"`
	Variables []string   `json:"variables"` // that have the placeholder inside
	Value     bool       `json:"value"`     // the running network has the value
	Requests  uint64     `json:"requests"`
	Last      *time.Time `json:"last"`              // null for never
	Refused   bool       `json:"refused"`           // the server refused the value in the last request
	Status    int        `json:"status,omitempty"`  // of the answer by which it did, 401, 403 or 429, or by which the server failed, from 500 on
	Limit     int        `json:"limit,omitempty"`   // of requests a day, if it is used up
	Problem   string     `json:"problem,omitempty"` // why the value cannot be read now
	Lost      bool       `json:"lost,omitempty"`    // the running network has lost the value

	// Silent is the number of seconds for which the server has answered nothing; 0 if it has answered within a moment.
	Silent int `json:"silent_seconds,omitempty"`

	Renewal string `json:"-"` // the command that gives the lost value again
	Ended   bool   `json:"-"` // the network has ended, and these are its last uses
	Anew    bool   `json:"-"` // the next command starts the airlock, and reads settings and variables again
}

// Text describes a credential.
func (c NetworkCredential) Text(paint Paint, now time.Time) string {
	text := fmt.Sprintf("%s (%s) for %s, %s inside", c.Name, gitops.Text(c.Source), gitops.Text(c.Hosts), strings.Join(c.Variables, ", "))
	switch {
	case c.Lost:
		text += ", " + paint.Red("no value: the network has lost it")
	case c.Refused:
		text += ", " + paint.Red("refused ("+strconv.Itoa(c.Status)+")")
	case c.Status != 0:
		text += ", " + paint.Red("the server failed ("+strconv.Itoa(c.Status)+")")
	case c.Silent > 0:
		text += ", " + paint.Red("no answer for "+c.silence())
	case c.Last != nil:
		text += fmt.Sprintf(", %s, the last %s", words.Count(int(min(c.Requests, 1<<30)), "request"), ago(*c.Last, now))
	}
	return text
}

// silence returns the time of Silent, such as 1m5s.
func (c NetworkCredential) silence() string { return (time.Duration(c.Silent) * time.Second).String() }

// Spent reports that the credential's own limit is used up.
func (c NetworkCredential) Spent() bool { return c.Status == 429 && c.Limit > 0 }

// Failing reports that the server has failed last, or has answered nothing, whatever the value is.
func (c NetworkCredential) Failing() bool { return c.Status >= 500 || c.Status == 0 && c.Silent > 0 }

// Refusal returns why a credential does not work, and a command to type next, which is empty if waiting may help.
func (c NetworkCredential) Refusal() (why, next string) {
	if c.Lost {
		return "the network was connected again, without the value", c.Renewal
	}
	if c.Status == 0 && c.Silent > 0 {
		return fmt.Sprintf("%s has answered nothing for %s", gitops.Text(c.Hosts).String(), c.silence()), ""
	}
	why, next = c.meaning()
	return fmt.Sprintf("%s answered %d: %s", gitops.Text(c.Hosts), c.Status, why), next
}

// meaning returns what a server's refusal of the value means, and a command to type next.
func (c NetworkCredential) meaning() (meaning, next string) {
	check := "git airlock net credential " + c.Name
	if c.Spent() {
		next := "git config airlock.credential." + c.Name + ".limit NUMBER"
		return fmt.Sprintf("your limit of %s a day is used up", words.Count(c.Limit, "request")), c.andAgain(next, next+" && git airlock stop && git airlock start")
	}
	switch {
	case c.Status >= 500:
		return "the server has failed, whatever the value is", ""
	case c.Status == 403:
		return "the value may not do this there", check
	case c.Status == 429:
		return "too many requests, or nothing is left to spend", ""
	}
	if variable, fixed := strings.CutPrefix(c.Source, "env:"); fixed {
		next := gitops.Text(variable).String() + "=VALUE"
		return fmt.Sprintf("the value of your variable %s is not valid, or not any more", gitops.Text(variable)),
			c.andAgain("export "+next, "git airlock stop && "+next+" git airlock start")
	}
	return "the value is not valid, or not any more; once it is renewed at its source, the network reads it again", check
}

// andAgain returns the command that gives the network a new value: only change if the next command starts the airlock, and restart
// otherwise, without the stop of an airlock that is stopped.
func (c NetworkCredential) andAgain(change, restart string) string {
	if c.Anew {
		return change + "  # and type the command again"
	}
	if c.Ended {
		return strings.ReplaceAll(restart, "git airlock stop && ", "")
	}
	return restart
}

// refusedCredentials prints the credentials whose value a server refused last, or the network has lost, with what to do.
func (p *statusText) refusedCredentials(all []NetworkCredential) {
	for _, c := range all {
		why, next := c.Refusal()
		p.alarm("credential", "%s (%s): %s", p.paint.Red(c.Name), gitops.Text(c.Source), why)
		if next != "" {
			p.next(next)
		}
	}
}

// NetworkRule is a rule with its origin.
type NetworkRule struct {
	Rule   string     `json:"rule"`
	Source string     `json:"source"`
	Until  *time.Time `json:"until"`  // null for ever
	Opaque bool       `json:"opaque"` // contents are not seen
}

// NetworkFlow is a connection that goes on.
type NetworkFlow struct {
	Name     string    `json:"name"`
	Address  string    `json:"address"`
	Port     uint16    `json:"port"`
	Proto    string    `json:"proto"`
	Rule     string    `json:"rule"`
	Since    time.Time `json:"since"`
	Sent     int64     `json:"sent"`
	Received int64     `json:"received"`
}

// Refused is a host that was refused, with the commands that allow it.
type Refused struct {
	Seq    uint64    `json:"seq"`
	Host   string    `json:"host"` // escaped
	Port   uint16    `json:"port"`
	Reason string    `json:"reason"`
	Count  int       `json:"count"`
	Time   time.Time `json:"time"`
	Next   Commands  `json:"next"`
	// Unneeded is the agent that asks for the host by itself and works without it, or empty. The project may still need the host.
	Unneeded string `json:"unneeded_by,omitempty"`

	Rules []string `json:"-"` // that would allow it, the narrowest first
}

// Print prints a document as text: what is open, by which rules, connections, and what was refused.
func (d NetworkDocument) Print(w io.Writer, paint Paint, now time.Time) error {
	p := &statusText{paint: paint, now: now}
	p.line("network", "%s%s", d.Network, d.condition(paint))
	if d.Failure != "" {
		p.alarm("failing", "%s", gitops.Text(d.Failure))
	}
	if d.Proxy != "" {
		p.line("proxy", "%s", gitops.Text(d.Proxy))
	}
	p.failingProxy(d.FailingProxy)
	for _, r := range d.Deny {
		p.line("deny", "%s", r.text(now))
	}
	for _, weaker := range d.Weaker {
		p.line("weaker", "%s", gitops.Text(weaker))
	}
	for _, r := range d.Allow {
		p.line("allow", "%s", r.text(now))
	}
	for _, c := range d.Credentials {
		p.line("credential", "%s", c.Text(paint, now))
		if d.Running && !c.Value && !c.Lost {
			p.next("git airlock net credential " + c.Name)
		}
		if _, next := c.Refusal(); (c.Refused || c.Lost) && next != "" {
			p.next(next)
		}
	}
	for _, f := range d.Flows {
		p.line("flow", "%s %s:%d, %s sent, %s received, since %s", f.Proto, gitops.Text(cmp.Or(f.Name, f.Address)), f.Port, words.Bytes(f.Sent), words.Bytes(f.Received), span(now.Sub(f.Since)))
	}
	p.refusedCertificate(d.RefusedCertificate)
	p.refusals(d.Refusals, d.MoreRefusals)
	_, err := p.WriteTo(w)
	return err
}

// lockedDown describes a network during a lockdown.
const lockedDown = "locked down: nothing is reached"

// condition describes what holds besides the rules.
func (d NetworkDocument) condition(p Paint) string {
	var words []string
	if d.Lockdown {
		words = append(words, p.Red(lockedDown))
	}
	if d.Learn {
		words = append(words, p.Yellow("learning: all public hosts are allowed"))
	}
	switch {
	case !d.Running:
		words = append(words, "not running")
	case d.InForce != d.Generation:
		words = append(words, p.Red("the newest rules are not in force"))
	}
	if len(words) == 0 {
		return ""
	}
	return ", " + strings.Join(words, ", ")
}

func (r NetworkRule) text(now time.Time) string {
	text := gitops.Text(r.Rule).String() + " (" + gitops.Text(r.Source).String() + ")"
	if r.Until != nil {
		text += ", for " + span(r.Until.Sub(now))
	}
	if r.Opaque {
		text += ", opaque"
	}
	return text
}

// refusals prints hosts that were refused, with the command that allows each, and the number of further ones.
func (p *statusText) refusals(all []Refused, more int) {
	for _, r := range all {
		times := ""
		if r.Count > 1 {
			times = ", " + words.Count(r.Count, "time")
		}
		host, when := gitops.Text(HostPort(r.Host, r.Port)).String(), ago(r.Time, p.now)
		if r.Unneeded != "" {
			p.line("refused", "%s: %s%s, %s; %s asks for this host by itself, and works without it; if the project needs it:",
				host, gitops.Text(r.Reason), times, when, gitops.Text(r.Unneeded))
		} else {
			p.line("refused", "%s: %s%s, %s", p.paint.Red(host), gitops.Text(r.Reason), times, when)
		}
		if len(r.Next) > 0 {
			p.next(r.Next[0])
		}
	}
	if more > 0 {
		p.line("refused", "and %s more", words.Count(more, "host"))
		p.next("git airlock net log --denied")
	}
}

// HostPort joins a host and a port, as URLs do.
func HostPort(host string, port uint16) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == 0 {
		return host
	}
	return host + ":" + strconv.Itoa(int(port))
}
