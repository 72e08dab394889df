package network

import (
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison/egress"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/sets"
)

// maxLearned bounds the targets that are learned from a ledger.
const maxLearned = 10_000

// Learned collects what records have reached.
type Learned struct{ seen map[string]bool }

// Add takes a record into account.
func (l *Learned) Add(r control.Record) {
	reached := r.Verdict == control.VerdictAllow || r.Verdict == control.VerdictBegun || r.Verdict == control.VerdictClosed
	if r.Kind != control.KindFlow && r.Kind != control.KindRequest || !reached || len(l.seen) >= maxLearned {
		return
	}
	t := TargetOf(r)
	if t.Host == "" || t.Port == 0 {
		return
	}
	text := exact(t)
	if r.Proto == control.ProtoTLS && r.Seen == control.SeenRequest { // the connection says less than its requests
		if text = exactRequest(Target{Host: t.Host, Port: t.Port, Method: r.Method, Path: r.Path}); text == "" {
			return
		}
	}
	if _, err := egress.ParseRule(text); err != nil {
		return // nothing that a rule could be about
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[text] = true
}

// TargetOf returns the target that a record is about. Its host is empty if the record has neither a name nor an address.
func TargetOf(r control.Record) Target {
	if r.Name != "" {
		t := Target{Host: r.Name, Port: r.Port}
		if r.Kind == control.KindRefusal {
			t.Method, t.Path = r.Method, r.Path
		}
		return t
	}
	return Target{Host: r.Address, Port: r.Port, IsAddress: true}
}

// Rules returns the shortest list of rules that allows what was reached, and nothing else: a set stands for its hosts if all of
// them were reached.
func (l *Learned) Rules() (rules []string) {
	left := map[string]bool{}
	for text := range l.seen {
		left[text] = true
	}
	names := sets.Names()
	slices.SortStableFunc(names, func(a, b string) int { return size(b) - size(a) })
	for _, set := range names {
		members, err := sets.Expand(set)
		if err != nil || len(members) < 2 || slices.ContainsFunc(members, func(m egress.Rule) bool { return !left[m.String()] }) {
			continue
		}
		rules = append(rules, set)
		for _, m := range members {
			delete(left, m.String())
		}
	}
	for text := range left {
		rules = append(rules, text)
	}
	slices.SortFunc(rules, strings.Compare)
	return rules
}

func size(set string) int {
	members, _ := sets.Expand(set) // a set that cannot be read has no members
	return len(members)
}
