package build

import (
	"context"
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// mostCompared bounds the waiting commits whose paths are compared with those of superseded ones.
const mostCompared = 1000

// hasSuperseded reports whether a place still has a superseded commit of by. If a waiting commit makes the same change again, as an amended one
// does, it would lack this change there, and the user's merge would not bring it.
func (r Request) hasSuperseded(ctx context.Context, onto gitops.OID, by map[gitops.OID]gitops.OID) (bool, error) {
	if len(by) == 0 {
		return false, nil
	}
	var outer []gitops.OID
	for superseded, newer := range by {
		outer = append(outer, superseded, newer)
	}
	has, err := r.reached(ctx, outer, onto)
	for superseded, newer := range by {
		if err == nil && has[superseded] && !has[newer] {
			return true, nil
		}
	}
	return false, err
}

// supersededHere maps the superseded commits that change a path of the waiting commits to the commits that undid them.
func (r Request) supersededHere(ctx context.Context) (map[gitops.OID]gitops.OID, error) {
	by := map[gitops.OID]gitops.OID{}
	for _, p := range r.Plan.Ledger.Landed {
		for _, id := range p.Supersedes {
			by[id] = p.Outer
		}
	}
	if len(by) == 0 {
		return nil, nil
	}
	links := slices.Clone(r.Plan.Links)
	for _, a := range r.Plan.Aside {
		links = append(links, a.Link)
	}
	waiting := gitops.Set[string]{}
	for i, l := range links {
		changed, all, err := r.changedBy(ctx, r.Inside, l.Commit)
		if err != nil || !all || i == mostCompared {
			return by, err
		}
		maps.Copy(waiting, changed)
	}
	for id := range by {
		changed, all, err := r.changedBy(ctx, r.Across, id)
		if err != nil || all && !meet(waiting, changed) { // the repository may have lost it
			delete(by, id)
		}
	}
	return by, nil
}

// changedBy returns the paths that a commit changes since its first parent. all is false if there are too many.
func (r Request) changedBy(ctx context.Context, in *quarantine.Inspector, commit gitops.OID) (paths gitops.Set[string], all bool, err error) {
	c, err := in.Commit(ctx, commit)
	if err != nil {
		return nil, false, err
	}
	parent := r.Plan.Ledger.Base.Inner
	if len(c.Parents) > 0 {
		parent = c.Parents[0]
	}
	return r.changed(ctx, in, parent, commit)
}
