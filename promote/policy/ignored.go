package policy

import (
	"context"
	"maps"
	"path"

	"github.com/git-airlock/git-airlock/gitops"
)

// Ignores reads the user's ignore rules. *[ignore.Rules] implements it.
type Ignores interface {
	// Ignored returns the paths that a rule covers and that the user does not track, each with its rule.
	Ignored(ctx context.Context, paths []string) (map[string]string, error)
	Close() error
}

// IgnoredPath is the id of the rule about new files in ignored folders.
const IgnoredPath = "ignored-path"

// ignoredPath finds new files in folders that the user ignores: environments, installed packages, build results.
// Nobody commits there in good faith, the files there are not visible, and programs are started from there. A single
// ignored file in another folder is not reported: if the user has a file of that name, the landing collides with it.
type ignoredPath struct{ ignores Ignores }

func (p ignoredPath) commit(ctx context.Context, in *inspection, r *report) error {
	var added []gitops.Change
	for _, c := range in.Changes {
		if c.Old.Mode == 0 && c.New.Mode != 0 {
			added = append(added, c)
		}
	}
	if p.ignores == nil || len(added) == 0 {
		return nil
	}
	rules, err := p.below(ctx, added)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, c := range added {
		switch rule, covered := rules[c.Path]; {
		case err != nil: // an agent's file must not prevent a verdict
			r.at(c.Path, "git cannot say whether your ignore rules cover it: %v", err)
		case covered:
			r.at(c.Path, "you ignore it (%s)", rule)
		}
	}
	return nil
}

// anyFile is a name that only rules for whole folders cover.
const anyFile = "/0d41f7b6c2e95a38"

// below returns the paths in a folder that a rule covers as a whole, each with the rule. A link counts as a folder.
// Files that the user tracks are left out.
func (p ignoredPath) below(ctx context.Context, added []gitops.Change) (map[string]string, error) {
	var probes, inside []string
	asked := map[string]bool{}
	probe := func(dir string) {
		if dir != "." && !asked[dir] {
			asked[dir] = true
			probes = append(probes, dir+anyFile)
		}
	}
	for _, c := range added {
		probe(path.Dir(c.Path))
		if c.New.Mode == gitops.ModeLink {
			probe(c.Path)
		}
	}
	covered, err := p.ignores.Ignored(ctx, probes)
	if err != nil || len(covered) == 0 {
		return nil, err
	}
	rules := map[string]string{}
	for _, c := range added {
		if rule, ok := covered[c.Path+anyFile]; ok && c.New.Mode == gitops.ModeLink {
			rules[c.Path] = rule
		} else if _, ok := covered[path.Dir(c.Path)+anyFile]; ok {
			inside = append(inside, c.Path)
		}
	}
	untracked, err := p.ignores.Ignored(ctx, inside)
	maps.Copy(rules, untracked)
	return rules, err
}
