package network

import (
	"fmt"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress"
	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// Unaccepted finds the last connection of a ledger whose program did not accept the network's certificate. A later connection to the same host
// that works ends the search, since programs then have another way.
type Unaccepted struct {
	Last *control.Record // nil if there is none
}

// Add takes the next record into account.
func (u *Unaccepted) Add(r control.Record) {
	switch {
	case r.Unaccepted():
		u.Last = &r
	case u.Last == nil || r.Name != u.Last.Name || r.Port != u.Last.Port:
	case r.Verdict != control.VerdictFailed && (r.Kind == control.KindFlow || r.Seen == control.SeenRequest):
		u.Last = nil
	}
}

// Newer returns the connection that was found, unless another record is newer.
func (u *Unaccepted) Newer(r *control.Record) *control.Record {
	if u.Last == nil || r != nil && r.Seq > u.Last.Seq {
		return r
	}
	return u.Last
}

// guarding returns the names of the credentials for the host of a record, and the name of one that lets programs speak to the network without TLS.
func guarding(rules Rules, r control.Record) (names []string, base string) {
	for _, c := range rules.Credentials {
		if slices.ContainsFunc(c.Rules, func(text string) bool { return isAbout(text, r) }) {
			names = append(names, c.Name)
			if c.Base {
				base = c.Name
			}
		}
	}
	return names, base
}

// isAbout reports whether a rule is about the host and the port of a record, or about requests there.
func isAbout(text string, r control.Record) bool {
	rule, err := egress.ParseRule(text)
	return err == nil && rule.Names(r.Name, r.Port)
}

// accepting returns the commands after which a program that accepts no certificate of the network reaches a host, and what a user may not expect
// of them. At a host with a credential the program speaks to the network without TLS. At other hosts a rule for the whole host lets the network
// copy the bytes. If a rule denies some requests to the host, no command helps, and the text says so.
func accepting(rules Rules, r control.Record, at time.Time) (next []string, text string) {
	host := gitops.Text(r.Name).String()
	names, base := guarding(rules, r)
	if base != "" {
		return nil, fmt.Sprintf("the credential %s has the mode base: programs ask for http://%s, and TLS to the host ends at the network whatever is allowed",
			gitops.Text(base), host)
	}
	for _, name := range names {
		next = append(next, "git config "+gitops.Pasteable("airlock.credential."+name+".mode")+" base && git airlock stop && git airlock start")
	}
	if len(next) > 0 {
		return next, "programs then ask for http://" + host + ", and the network speaks TLS with the host in their place"
	}
	for _, denial := range rules.Deny {
		if !denial.Ended(at) && isAbout(denial.Text, r) {
			return nil, fmt.Sprintf("the rule %s (%s) denies requests to %s: TLS to the host ends at the network, which reads each request, whatever is allowed",
				gitops.Text(denial.Text), gitops.Text(denial.Source), host)
		}
	}
	return []string{"git airlock net allow " + gitops.Pasteable(exact(TargetOf(r)))},
		"such a rule is for the whole host: the network neither sees nor decides about its requests"
}
