package runs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/ledger"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// network adds what the prison reached.
func (g *gathering) network(context.Context) error {
	dir, ok := g.ledgerDir()
	if !ok {
		g.absent[record.EgressName] = "the prison had no network"
		return nil
	}
	if g.Record.Isolation.Network == prison.NetworkOpen.String() {
		g.visibility = append(g.visibility, "hosts are recorded as addresses where the prison had an open network")
	}
	lines, lost, err := connections(dir, g.Egress)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(lines, record.Egress.Denied) {
		g.found(record.Denied, "the network refused a host that a rule denies")
	}
	for i := range lines {
		lines[i].Name, lines[i].Path = g.values.Text(lines[i].Name), g.values.Text(lines[i].Path)
	}
	content, about, left, err := summedUp(lines)
	g.put(record.EgressName, content, about)
	if lost += left; lost > 0 {
		g.Manifest.Unlisted.Network = lost
		g.visibility = append(g.visibility, fmt.Sprintf("the record lacks %s of the network of this run", words.Count(int(lost), "line")))
	}
	return err
}

// connections returns the records of a ledger after the one with the number after, and how many others there were. Denials are among them also
// if they were rotated away.
func connections(dir string, after uint64) (lines []record.Egress, lost uint64, err error) {
	newest, err := ledger.Newest(dir)
	if err != nil || newest <= after {
		return nil, 0, err
	}
	add := func(r record.Egress) { lines = append(lines, r) }
	if err := ledger.Range(dir, after, newest, add); err != nil {
		return nil, 0, err
	}
	oldest := newest + 1
	if len(lines) > 0 {
		oldest = lines[0].Seq
	}
	rest := lines
	lines = nil
	if err := ledger.Denied(dir, after, oldest-1, add); err != nil {
		return nil, 0, err
	}
	lines = append(lines, rest...)
	return lines, newest - after - min(newest-after, uint64(len(lines))), nil
}

// summedRoom is how many bytes lines that sum up others may have.
const summedRoom = 1 << 20

// summedUp returns a file with the records of a network. If they are too many, those beyond are summed up by host and result in lines at its end. left
// is the number of those that are in no line.
func summedUp(all []record.Egress) (content []byte, about record.File, left uint64, err error) {
	whole, err := record.EncodeLines(all)
	if err != nil || len(whole) <= record.MaxFile {
		return whole, about, 0, err
	}
	lines := slices.Collect(bytes.Lines(whole))
	room, keep := record.MaxFile-summedRoom, make([]bool, len(all))
	take := func(least int, wanted func(record.Egress) bool) {
		for i, r := range all {
			if keep[i] || !wanted(r) {
				continue
			}
			if room-len(lines[i]) < least {
				return
			}
			room, keep[i] = room-len(lines[i]), true
		}
	}
	take(room/3, record.Egress.Denied)
	take(room/3, alone)
	take(0, func(record.Egress) bool { return true })
	var others []record.Egress
	for i, r := range all {
		if keep[i] {
			content = append(content, lines[i]...)
		} else {
			others = append(others, r)
		}
	}
	for _, r := range sums(others) {
		line, err := record.EncodeLines([]record.Egress{r})
		if err != nil || len(content)+len(line) > record.MaxFile {
			left += uint64(r.Count)
			continue
		}
		content = append(content, line...)
	}
	about.Cut, about.Note = int64(len(whole)-len(content)), "the last connections and requests are summed up"
	return content, about, left, nil
}

// alone reports whether a record keeps its line if there is room. Short connections and requests do not. The beginning and the end of a long
// connection belong together.
func alone(r record.Egress) bool {
	return r.Kind != control.KindFlow && r.Kind != control.KindRequest || r.Verdict == control.VerdictBegun || r.Millis >= control.LongFlow.Milliseconds()
}

// sums returns one record for those with the same host and result.
func sums(all []record.Egress) (summed []record.Egress) {
	index := map[record.Egress]int{}
	for _, r := range all {
		key := record.Egress{V: r.V, Session: r.Session, Kind: r.Kind, Via: r.Via, Proto: r.Proto, Name: r.Name, Port: r.Port, Verdict: r.Verdict,
			Rule: r.Rule, Reason: r.Reason, Seen: r.Seen, Status: r.Status}
		if r.Name == "" {
			key.Address = r.Address
		}
		i, known := index[key]
		if !known {
			i = len(summed)
			index[key], summed = i, append(summed, key)
		}
		s := &summed[i]
		s.Seq, s.Time, s.Count = r.Seq, r.Time, s.Count+max(1, r.Count)
		s.Sent, s.Received = s.Sent+r.Sent, s.Received+r.Received
	}
	slices.SortStableFunc(summed, func(a, b record.Egress) int { return cmp.Compare(b.Count, a.Count) })
	return summed
}
