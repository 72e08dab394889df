package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// refusedPrefix begins the result of a refused host.
const refusedPrefix = "refused: "

// hostsOf returns the destinations in the record of a network: first those that were refused, then the others, ordered by the bytes sent to them.
// The refusal of a host that the agent works without has no mark, although another program may have needed the host: the record has no program.
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
			result, level = Text(refusedPrefix+m.who()+" asks for this host by itself, and works without it"), Plain
		case !reached(r):
			result, level = Text(refusedPrefix+cmp.Or(r.Reason, "no rule allows it")), Bad
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
	answers := answersOf(records)
	for i := range hosts {
		if bad := answers[hosts[i].Name.Raw()].bad(); bad != "" && hosts[i].Level == Good {
			hosts[i].Result, hosts[i].Level, hosts[i].refusing = Text(bad), Look, true
		}
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

// answers counts the requests to a host of which the network has seen the answers.
type answers struct {
	good     bool        // one was neither refused nor failed
	unseen   bool        // the bytes of a connection were copied, so that its answers are unknown
	statuses map[int]int // number of requests by the status of the others; 0 for no answer
}

// answersOf returns the answers in the record of a network by the destination.
func answersOf(records []record.Egress) map[string]answers {
	all := map[string]answers{}
	for _, r := range records {
		a, known := all[destination(r)]
		if !known {
			a.statuses = map[int]int{}
		}
		switch {
		case r.Kind == control.KindFlow && r.Proto == control.ProtoTLS && r.Seen == control.SeenOpaque && r.Verdict != control.VerdictFailed:
			a.unseen = true // requests without TLS have records also in such a flow
		case r.Kind != control.KindRequest:
		case r.Verdict == control.VerdictFailed, r.Status == 0: // a status is then the network's own
			a.statuses[0] += max(1, r.Count)
		case control.IsBad(r.Status):
			a.statuses[r.Status] += max(1, r.Count)
		default:
			a.good = true
		}
		all[destination(r)] = a
	}
	return all
}

// bad describes the answers of a host that has answered no request well. It is empty for another one, for one without a request, and for one
// that may have answered well on a connection that the network did not read.
func (a answers) bad() string {
	if a.good || a.unseen || len(a.statuses) == 0 {
		return ""
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(a.statuses)) {
		if status != 0 {
			parts = append(parts, fmt.Sprintf("%d (%s)", status, times(a.statuses[status])))
		}
	}
	if len(parts) == 0 {
		return "no answer"
	}
	return "no good answer: " + list(parts)
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

// refusal describes a refused host, with the reason.
func (h Host) refusal() string {
	return fmt.Sprintf("%s, %s: %s", h.Name.Raw(), times(h.Requests+h.Connections), strings.TrimPrefix(h.Result.Raw(), refusedPrefix))
}

func destination(r record.Egress) string {
	name := cmp.Or(r.Name, r.Address, "unknown")
	if r.Port != 0 && r.Port != 443 && r.Port != 80 {
		name = fmt.Sprintf("%s port %d", name, r.Port)
	}
	return name
}
