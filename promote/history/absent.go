package history

import (
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// absent maps commits to those in their histories that are left out or dropped, themselves included.
type absent map[gitops.OID][]gitops.OID

// follow adds a commit after its parents. out reports whether the commit itself is absent.
func (a absent) follow(l quarantine.Link, out bool) {
	var all []gitops.OID
	if len(l.Parents) > 0 {
		all = slices.Concat(a[l.Parents[0]], a.brought(l))
	}
	if out {
		all = append(all, l.Commit)
	}
	a[l.Commit] = all
}

// brought returns the absent commits that a merge brings: those in the histories of its other parents, and not in the history of its
// first one. The merge's change since its first parent contains their changes.
func (a absent) brought(l quarantine.Link) (brought []gitops.OID) {
	if len(l.Parents) < 2 {
		return nil
	}
	known := map[gitops.OID]bool{}
	for _, id := range a[l.Parents[0]] {
		known[id] = true
	}
	for _, other := range l.Parents[1:] {
		for _, id := range a[other] {
			if !known[id] {
				known[id], brought = true, append(brought, id)
			}
		}
	}
	return brought
}

// Brought maps merges to the absent commits that they bring. links has parents before children.
func Brought(links []quarantine.Link, out func(gitops.OID) bool) map[gitops.OID][]gitops.OID {
	a, all := absent{}, map[gitops.OID][]gitops.OID{}
	for _, l := range links {
		if brought := a.brought(l); brought != nil {
			all[l.Commit] = brought
		}
		a.follow(l, out(l.Commit))
	}
	return all
}
