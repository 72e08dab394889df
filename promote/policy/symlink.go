package policy

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/treelink"
)

// symlinkEscape finds links that no system can create, and links that lead out of the repository, into .git or into the workspace when
// they are followed through the other links of the tree. One link can change where another one leads, so that a commit which touches a
// link makes the rule check all links.
type symlinkEscape struct{ workspace string }

const symlinkEscapeID = "symlink-escape"

func (s symlinkEscape) commit(ctx context.Context, in *inspection, r *report) error {
	changed := map[string]bool{}
	for _, c := range in.Changes {
		if c.New.Mode == gitops.ModeLink || c.Old.Mode == gitops.ModeLink {
			changed[c.Path] = true
		}
	}
	if len(changed) == 0 {
		return nil
	}
	now, err := in.links.Of(ctx, in.objects, in.Tree)
	if err != nil {
		return err
	}
	before, err := in.links.Of(ctx, in.objects, in.ParentTree)
	if err != nil {
		return err
	}
	left := treelink.StepBudget
	for _, path := range now.Paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		had := left
		why := now.Escapes(path, s.workspace, &left)
		if why == "" || !changed[path] && before.Has(path) && before.Escapes(path, s.workspace, &left) != "" {
			why = ""
		}
		if err := in.meter.spend(int64(had-left) * stepCost); err != nil {
			return err
		}
		if why == "" {
			continue
		}
		r.at(path, "the link %s", why)
	}
	if left < 0 {
		r.at("", "there are too many links to be followed")
	}
	return nil
}

// byName has the rules that go by the name of a path.
var byName = map[string]bool{"workspace-exposed": true, "user-driver": true, "embedded-repo": true, "agent-config": true, "host-exec": true,
	"recipe": true, "slow-pattern": true, "git-resources": true, protectedPathID: true}

// otherNames checks a change with the rules that go by the name of a path, under each other name that the links of the tree
// give it. A program that opens .mcp.json reads the file to which the link of that name leads.
func (g *Gate) otherNames(ctx context.Context, in *inspection, c gitops.Change, reports []*report) (rule string, err error) {
	links, err := in.links.Of(ctx, in.objects, in.Tree)
	if err != nil {
		return "", err
	}
	if err := in.meter.spend(int64(links.Read()) * stepCost); err != nil {
		return "", err
	}
	names, whole := links.Names(c.Path)
	for n, r := range g.rules {
		if !whole && (byName[r.ID] || r.ID == symlinkEscapeID) {
			whole = true // one rule is enough, and symlink-escape comes first
			reports[n].at(c.Path, "has more names through the links of the tree than are checked (%d)", treelink.NameLimit)
		}
		if !byName[r.ID] {
			continue
		}
		for _, name := range names {
			if err := in.meter.spend(changeCost/8 + int64(len(name))); err != nil {
				return r.ID, err
			}
			other := c
			other.Path = name
			reports[n].other = &otherName{c.Path, name}
			err := r.change(ctx, in, other, reports[n])
			reports[n].other = nil
			if err != nil {
				return r.ID, err
			}
		}
	}
	return "", nil
}
