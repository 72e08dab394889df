package network

import (
	"slices"

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

// guarding returns the names of the credentials for the host of a record.
func guarding(rules Rules, r control.Record) (names []string) {
	for _, c := range rules.Credentials {
		if slices.ContainsFunc(c.Rules, func(text string) bool {
			rule, err := egress.ParseRule(text)
			return err == nil && rule.Names(r.Name, r.Port)
		}) {
			names = append(names, c.Name)
		}
	}
	return names
}

// accepting returns the command after which a program that accepts no certificate of the network reaches a host. At a host with a credential the
// program speaks to the network without TLS. At other hosts a rule for the whole host lets the network copy the bytes.
func accepting(rules Rules, r control.Record) (next []string) {
	for _, name := range guarding(rules, r) {
		next = append(next, "git config "+gitops.Pasteable("airlock.credential."+name+".mode")+" base && git airlock stop && git airlock start")
	}
	if len(next) == 0 {
		next = []string{"git airlock net allow " + gitops.Pasteable(exact(TargetOf(r)))}
	}
	return next
}

// acceptingRisk returns what a user may not expect of the command that [accepting] returns.
func acceptingRisk(rules Rules, r control.Record) string {
	if host := gitops.Text(r.Name).String(); len(guarding(rules, r)) > 0 {
		return "programs then ask for http://" + host + ", and the network speaks TLS with the host in their place"
	}
	return "such a rule is for the whole host: the network neither sees nor decides about its requests"
}
