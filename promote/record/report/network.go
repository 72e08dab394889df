package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// hostsOf returns the destinations in the record of a network: first those that were refused, then the others, ordered by the bytes sent to them.
// The refusal of a host that the agent works without is nothing to look at.
func (m *material) hostsOf(records []record.Egress) (hosts []Host) {
	index := map[string]int{}
	begun := map[string][]record.Egress{} // connections whose end is not in the record
	for _, r := range records {
		name := destination(r)
		if !reached(r) && r.Kind != control.KindRefusal {
			continue
		}
		result, level := Text("reached"), Good
		switch {
		case r.For(m.Unneeded):
			result, level = Text("refused, as expected: "+m.who()+" works without it"), Plain
		case !reached(r):
			result, level = Text("refused: "+cmp.Or(r.Reason, "no rule allows it")), Bad
		case r.Verdict == control.VerdictFailed:
			result, level = Text("failed: "+r.Reason), Look
		}
		key := string(level) + " " + name
		i, known := index[key]
		if !known {
			i = len(hosts)
			index[key] = i
			hosts = append(hosts, Host{Name: Text(name), Result: result, Level: level})
		}
		hosts[i].add(r, begun, key)
	}
	for key, open := range begun {
		for _, r := range open {
			hosts[index[key]].Sent += r.Sent
			hosts[index[key]].Received += r.Received
		}
	}
	slices.SortStableFunc(hosts, func(a, b Host) int {
		return cmp.Or(cmp.Compare(rank(b.Level), rank(a.Level)), cmp.Compare(b.Sent, a.Sent), strings.Compare(a.Name.Raw(), b.Name.Raw()))
	})
	return hosts
}

// reached reports whether a record is about a connection that was allowed.
func reached(r record.Egress) bool {
	return r.Kind == control.KindFlow || r.Kind == control.KindRequest
}

// add counts a record of a connection or a request. A long connection has a record of its beginning, which counts only if the record of its end
// is missing. Bytes are those of connections, which contain the bytes of their requests.
func (h *Host) add(r record.Egress, begun map[string][]record.Egress, key string) {
	if r.Verdict == control.VerdictBegun {
		begun[key] = append(begun[key], r)
		h.Connections++
		return
	}
	if r.Seen == control.SeenRequest && r.Kind != control.KindFlow {
		h.Requests += max(1, r.Count)
		return
	}
	if open := begun[key]; len(open) > 0 && r.Millis >= control.LongFlow.Milliseconds() {
		begun[key] = open[1:]
		h.Connections--
	}
	h.Connections += max(1, r.Count)
	h.Sent += r.Sent
	h.Received += r.Received
}

// Often returns the numbers of requests and connections in words.
func (h Host) Often() string {
	switch {
	case h.Requests == 0:
		return words.Count(h.Connections, "connection")
	case h.Connections == 0:
		return words.Count(h.Requests, "request")
	}
	return words.Count(h.Requests, "request") + " in " + words.Count(h.Connections, "connection")
}

func destination(r record.Egress) string {
	name := cmp.Or(r.Name, r.Address, "unknown")
	if r.Port != 0 && r.Port != 443 && r.Port != 80 {
		name = fmt.Sprintf("%s port %d", name, r.Port)
	}
	return name
}
