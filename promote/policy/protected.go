package policy

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

// protectedPath looks for changes of what a team guards.
type protectedPath struct{ guards []protection }

func (protectedPath) describe() Description {
	return documented("protected-path", Hold, "a path that the team's policy ("+TeamRef+") protects")
}

func (p protectedPath) change(_ context.Context, in *inspection, c gitops.Change, r *report) error {
	for _, g := range p.guards {
		if err := in.meter.spend(int64(len(g.patterns) * len(c.Path))); err != nil {
			return err
		}
		if g.covers(c.Path) || c.New.Mode == gitops.ModeLink && g.covers(c.Path+"/x") { // a link stands for a folder
			tell := r.at
			if g.action == Flag {
				tell = r.mention
			}
			tell(c.Path, "protected by the team's policy: %s", g.why())
		}
	}
	return nil
}

func (protectedPath) commit(context.Context, *inspection, *report) error { return nil }

func (g protection) covers(path string) bool {
	for _, p := range g.patterns {
		if p.Matches(path) {
			return true
		}
	}
	return false
}

func (g protection) why() string {
	if g.reason == "" {
		return "no reason given"
	}
	return g.reason
}
