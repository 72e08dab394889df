package network

import (
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison/egress"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/sets"
)

// maxLearned bounds the targets that are learned from a ledger.
const maxLearned = 10_000

// Learned collects what records have reached.
type Learned struct {
	// seen has the rules that allow it. The value is the rule about all requests to the same host and port, which can be the same.
	seen map[string]string
}

// Add takes a record into account. Where requests are seen, the connection that carried them is not: all of them may have been refused.
func (l *Learned) Add(r control.Record) {
	reached := r.Verdict == control.VerdictAllow || r.Verdict == control.VerdictBegun || r.Verdict == control.VerdictClosed
	if r.Kind != control.KindFlow && r.Kind != control.KindRequest || !reached || len(l.seen) >= maxLearned {
		return
	}
	t := TargetOf(r)
	if r.Kind == control.KindFlow && (r.Proto == control.ProtoHTTP || r.Seen == control.SeenRequest) || t.Host == "" || t.Port == 0 {
		return
	}
	text, whole := exact(t), exact(t)
	if r.Kind == control.KindRequest && (r.Proto == control.ProtoTLS || byRequest(r)) {
		text = narrowRequest(Target{Host: t.Host, Port: t.Port, Method: r.Method, Path: r.Path})
		if !strings.HasPrefix(text, r.Method+" ") || strings.HasSuffix(text, "**") {
			return // it allows more than this request
		}
	}
	if _, err := egress.ParseRule(text); err != nil {
		return // nothing that a rule could be about
	}
	if l.seen == nil {
		l.seen = map[string]string{}
	}
	l.seen[text] = whole
}

// byRequest reports whether a rule about requests has decided. Requests of plain HTTP are also seen where a rule allows the host.
func byRequest(r control.Record) bool {
	text, _, _ := strings.Cut(r.Rule, " (") // its source follows
	rule, err := egress.ParseRule(text)
	return err == nil && rule.Requests()
}

// TargetOf returns the target that a record is about. Its host is empty if the record has neither a name nor an address.
func TargetOf(r control.Record) Target {
	if r.Name != "" {
		t := Target{Host: r.Name, Port: r.Port}
		if r.Kind == control.KindRefusal {
			t.Method, t.Path, t.At, t.Encrypted = r.Method, r.Path, r.Address, r.Encrypted()
		}
		return t
	}
	return Target{Host: r.Address, Port: r.Port, IsAddress: true}
}

// Rules returns the shortest list of rules that allows what was reached, and nothing else: a set stands for its hosts if all of
// them were reached.
func (l *Learned) Rules() (rules []string) {
	left := map[string]bool{}
	for text, whole := range l.seen {
		if _, known := l.seen[whole]; text == whole || !known {
			left[text] = true
		}
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
	rules = slices.AppendSeq(rules, maps.Keys(left))
	slices.Sort(rules)
	return rules
}

func size(set string) int {
	members, _ := sets.Expand(set) // a set that cannot be read has no members
	return len(members)
}
