package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/ledger"
	promoted "github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

const (
	// notedHosts bounds the hosts that a note lists as reached, and those that it lists as refused.
	notedHosts = 100
	// countedHosts bounds the hosts that have counts of their own while a note is made.
	countedHosts = 10_000
	// longestHost is more than a name with a port has (RFC 1035), in bytes.
	longestHost = 280
)

// Notes makes the notes about the network of an airlock from the ledger in the folder Dir.
type Notes struct{ Airlock, Session, Dir string }

// Newest returns the number of the newest record in the ledger, or 0 if the ledger cannot be read.
func (n Notes) Newest() uint64 {
	newest, _ := ledger.Newest(n.Dir) // Note reports the error
	return newest
}

// Placeholders returns the placeholders that programs inside have in place of keys. If the rules cannot be read, it returns none.
func (n Notes) Placeholders() (all []string) {
	rules, _ := control.ReadRules(n.Dir) // a new start reports the error
	for _, c := range rules.Credentials {
		if c.Placeholder != "" {
			all = append(all, c.Placeholder)
		}
	}
	return all
}

// Note returns the text of a note about the records after one number up to another, and about connections without a record. The text has the
// form of the notes on provenance: a subject, an empty line, and trailers. A host is a name or an address with a port.
func (n Notes) Note(after, upTo uint64, open []promoted.Connection) string {
	w := window{reached: map[string]*noted{}, refused: map[string]*noted{}}
	_, err := ledger.Newest(n.Dir)
	if err == nil {
		err = ledger.Range(n.Dir, after, upTo, w.add)
	}
	w.addOpen(open)
	return w.text(n, after, upTo, err)
}

// Open returns the connections that have no record yet, as [ledger.Egress] describes it. There are none without a running network.
func (n Notes) Open(ctx context.Context, asked bool) (open []promoted.Connection, err error) {
	state, err := control.ReadState(n.Dir)
	if err == nil && asked && state.Asked > 0 {
		state, err = n.ask(ctx, state)
	}
	for _, f := range state.Flows {
		host := noteHost(control.Record{Name: f.Name, Address: f.Address, Port: f.Port})
		open = append(open, promoted.Connection{Host: host, Sent: f.Sent, Received: f.Got, Named: f.Rule != "", Ended: f.Ended})
	}
	slices.SortStableFunc(open, func(a, b promoted.Connection) int { return cmp.Compare(b.Sent+b.Received, a.Sent+a.Received) })
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return open, err
}

// ask returns a state of the network that is newer than the call.
func (n Notes) ask(ctx context.Context, last control.State) (control.State, error) {
	number, err := control.Ask(n.Dir, last)
	if err != nil {
		return last, fmt.Errorf("ask the network: %w", err)
	}
	var ended error
	err = await(ctx, func() (bool, error) {
		state, err := control.ReadState(n.Dir)
		if errors.Is(err, fs.ErrNotExist) {
			last, ended = state, err
			return true, nil
		}
		if err == nil {
			last = state
		}
		return last.Asked >= number, err
	})
	if err != nil {
		return last, fmt.Errorf("the network does not answer: %w", err)
	}
	return last, ended
}

// Fetched lists the hosts that sent something and that no rule names, from the records after one number up to another, and from connections
// that have no record until their end. It also lists records that cannot be read or may be lost, because they may be about such a host.
func (n Notes) Fetched(after, upTo uint64, open []promoted.Connection) (found []string) {
	all, lost, unnamed := uint64(0), "", window{reached: map[string]*noted{}}
	add := func(r control.Record) {
		all++
		if r.Verdict == control.VerdictLost {
			lost = r.Reason
		}
		if r.Rule == "" && r.Received > 0 && r.Kind != control.KindRefusal {
			unnamed.add(r)
		}
	}
	if err := ledger.Range(n.Dir, after, upTo, add); err != nil {
		found = append(found, "the record of the network cannot be read: "+err.Error())
	}
	if missing := upTo - after - all; missing > 0 {
		found = append(found, fmt.Sprintf("%d records of the network are lost", missing))
	}
	if lost != "" {
		found = append(found, "records of the network may be lost: "+gitops.Text(lost).String())
	}
	for _, c := range open {
		if c.Ended && !c.Named && c.Received > 0 && unnamed.reached[c.Host] == nil {
			unnamed.reached[c.Host] = &noted{host: c.Host, received: c.Received}
		}
	}
	for _, h := range first(unnamed.reached) {
		found = append(found, "something came from "+h.host+", which no rule names")
	}
	for _, c := range open {
		if !c.Ended && !c.Named {
			found = append(found, "a connection to "+c.Host+" is open, which no rule names")
		}
	}
	return found
}

// window sums up the records of a period.
type window struct {
	records          uint64
	reached, refused map[string]*noted
	rules, alarms    int
	others           int // refusals of no single host, or of too many hosts
}

// noted counts the records about one host.
type noted struct {
	host                                 string
	ended, begun, open, failed, requests int
	sent, received                       int64
	reason                               string // of the last refusal
}

func (w *window) add(r control.Record) {
	w.records++
	switch r.Kind {
	case control.KindPolicy:
		w.rules += max(1, r.Count)
	case control.KindAlarm:
		w.alarms += max(1, r.Count)
	case control.KindRefusal:
		if h := counted(w.refused, r); h != nil {
			h.ended += max(1, r.Count)
			h.reason = r.Reason
		} else {
			w.others += max(1, r.Count)
		}
	case control.KindFlow, control.KindRequest:
		h := counted(w.reached, r)
		if h == nil {
			w.others++
			return
		}
		switch {
		case r.Kind == control.KindRequest:
			h.requests++
		case r.Verdict == control.VerdictBegun:
			h.begun++
		case r.Verdict == control.VerdictFailed:
			h.failed++
		default:
			h.ended++
			h.sent += r.Sent
			h.received += r.Received
		}
	}
}

// addOpen adds connections without a record. One that has ended may have got its record meanwhile, so it counts only if its host has none.
func (w *window) addOpen(open []promoted.Connection) {
	for _, c := range open {
		h := w.reached[c.Host]
		if h == nil {
			h = &noted{host: c.Host}
			w.reached[c.Host] = h
		}
		if c.Ended && h.ended > 0 {
			continue
		}
		h.open++
		h.sent += c.Sent
		h.received += c.Received
	}
}

// counted returns the counts of a record's host, nil if it has none or there are too many.
func counted(hosts map[string]*noted, r control.Record) *noted {
	t := TargetOf(r)
	if t.Host == "" {
		return nil
	}
	host := noteHost(r)
	if hosts[host] == nil && len(hosts) < countedHosts {
		hosts[host] = &noted{host: host}
	}
	return hosts[host]
}

// noteHost returns the host of a record as notes have it.
func noteHost(r control.Record) string {
	return gitops.Text(words.Clip(TargetOf(r).String(), longestHost)).String()
}

func (w window) text(n Notes, after, upTo uint64, unread error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "network of airlock %s: %s reached, %d refused\n\n", n.Airlock, words.Count(w.connected(), "host"), len(w.refused))
	line := func(key, format string, values ...any) { fmt.Fprintf(&b, "Airlock-"+key+": "+format+"\n", values...) }
	line("Version", "1")
	line("Session", "%s", n.Session)
	if upTo > after {
		line("Records", "%d-%d", after+1, upTo)
	}
	if unread != nil {
		line("Error", "%s", gitops.Text(unread.Error()))
	}
	if lost := upTo - after - w.records; lost > 0 {
		line("Lost-Records", "%d", lost)
	}
	for _, h := range first(w.reached) {
		line("Reached", "%s", h.line())
	}
	for _, h := range first(w.refused) {
		line("Refused", "%s count=%d reason=%s", h.host, h.ended, gitops.Text(clip(h.reason)))
	}
	for _, more := range []struct {
		key   string
		count int
	}{
		{"More-Reached", len(w.reached) - notedHosts}, {"More-Refused", len(w.refused) - notedHosts}, {"Other-Records", w.others},
		{"Rule-Changes", w.rules}, {"Alarms", w.alarms},
	} {
		if more.count > 0 {
			line(more.key, "%d", more.count)
		}
	}
	return b.String()
}

// connected returns the number of hosts to which a connection was made.
func (w window) connected() (hosts int) {
	for _, h := range w.reached {
		if h.ended+h.begun+h.open+h.requests > 0 {
			hosts++
		}
	}
	return hosts
}

// line describes a host that was reached. Counts of zero are left out, except the number of connections.
func (h noted) line() string {
	text := fmt.Sprintf("%s count=%d", h.host, h.ended)
	for _, about := range []struct {
		key   string
		count int64
	}{
		{"begun", int64(h.begun)}, {"open", int64(h.open)}, {"failed", int64(h.failed)}, {"requests", int64(h.requests)}, {"sent", h.sent}, {"received", h.received},
	} {
		if about.count > 0 {
			text += fmt.Sprintf(" %s=%d", about.key, about.count)
		}
	}
	return text
}

// first returns the hosts with the most bytes and records.
func first(hosts map[string]*noted) []*noted {
	sorted := slices.SortedFunc(maps.Values(hosts), func(a, b *noted) int {
		return cmp.Or(cmp.Compare(b.sent+b.received, a.sent+a.received), cmp.Compare(b.ended, a.ended), cmp.Compare(a.host, b.host))
	})
	return sorted[:min(len(sorted), notedHosts)]
}
