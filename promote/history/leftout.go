package history

import (
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// LeftOut describes the commits that were left out when later ones landed.
type LeftOut struct {
	Tip     gitops.OID          // the inner commit to promote
	History []quarantine.Link   // the commits that Tip reaches, landed ones included, parents first
	Commits map[gitops.OID]bool // the commits left out, without dropped ones
	Held    map[gitops.OID]bool // see [Aside.Held]
	Landed  func(gitops.OID) bool
	Drops   func(gitops.OID) bool
}

// Aside returns the commits left out that landed commits follow, parents first. A commit that the agent has gone back to is new again
// and is not among them. absent is the value of [Facts.Absent].
func (o LeftOut) Aside() (aside []Aside, absent map[gitops.OID][]gitops.OID) {
	again, below, points := o.again(), map[gitops.OID]bool{}, map[gitops.OID]bool{o.Tip: true}
	brings, absent := follow(nil, o.History, func(id gitops.OID) bool { return o.Commits[id] || o.Drops(id) })
	for _, l := range slices.Backward(o.History) { // children before parents
		landed := o.Landed(l.Commit)
		for i, id := range l.Parents {
			below[id] = below[id] || landed || below[l.Commit]
			// Others are reached only as commits that a merge brings, which has not landed.
			points[id] = points[id] || landed || i == 0 && points[l.Commit]
		}
		if o.Commits[l.Commit] && below[l.Commit] && !again[l.Commit] {
			aside = append(aside, Aside{Link: l, Side: !points[l.Commit], Held: o.Held[l.Commit], Older: true, Brings: brings[l.Commit]})
		}
	}
	slices.Reverse(aside)
	return aside, absent
}

// again returns the commits that the agent has gone back to: those of its first-parent history since the newest landed commit there, and
// what they reach.
func (o LeftOut) again() map[gitops.OID]bool {
	chain, again := map[gitops.OID]bool{o.Tip: true}, map[gitops.OID]bool{}
	for _, l := range slices.Backward(o.History) { // children before parents
		if o.Landed(l.Commit) {
			continue
		}
		if chain[l.Commit] && len(l.Parents) > 0 {
			chain[l.Parents[0]] = true
		}
		if again[l.Commit] = again[l.Commit] || chain[l.Commit] && o.Commits[l.Commit]; !again[l.Commit] {
			continue
		}
		for _, id := range l.Parents {
			again[id] = true
		}
	}
	return again
}
