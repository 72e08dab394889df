package history

import (
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// absent maps commits to those in their histories that are left out or dropped, themselves included.
type absent map[gitops.OID][]gitops.OID

// add adds a commit after its parents. out reports whether the commit itself is absent.
func (a absent) add(l quarantine.Link, out bool) {
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
	known := gitops.SetOf(a[l.Parents[0]]...)
	for _, other := range l.Parents[1:] {
		for _, id := range a[other] {
			if !known[id] {
				known[id], brought = true, append(brought, id)
			}
		}
	}
	return brought
}

// extend adds commits to a copy of known, parents before children. brings maps the merges among them to the absent commits that they bring.
func extend(known absent, links []quarantine.Link, out func(gitops.OID) bool) (brings map[gitops.OID][]gitops.OID, all absent) {
	brings, all = map[gitops.OID][]gitops.OID{}, absent{}
	maps.Copy(all, known)
	for _, l := range links {
		if brought := all.brought(l); brought != nil {
			brings[l.Commit] = brought
		}
		all.add(l, out(l.Commit))
	}
	return brings, all
}

// Brings maps merges to the absent commits that they bring. links has parents before children.
func (f Facts) Brings(links []quarantine.Link, out func(gitops.OID) bool) map[gitops.OID][]gitops.OID {
	brings, _ := extend(f.Absent, links, out)
	return brings
}
