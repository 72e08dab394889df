package policy

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

// Ignores reads the user's ignore rules; *[gitops.Ignores] is one.
type Ignores interface {
	// Ignored returns those paths that the rules cover and the user does not track, each with the rule.
	Ignored(ctx context.Context, paths []string) (map[string]string, error)
	Close() error
}

// ignoredPath looks for new files where the user ignores files: environments, installed packages, what is built. Nobody
// commits there in good faith, nobody sees what lies there, and programs are started from there.
type ignoredPath struct{ ignores Ignores }

func (ignoredPath) describe() Description {
	return documented("ignored-path", Hold, "a new file at a path that your own ignore rules cover, such as .venv/ or node_modules/")
}

func (ignoredPath) change(context.Context, *inspection, gitops.Change, *report) error { return nil }

func (p ignoredPath) commit(ctx context.Context, in *inspection, r *report) error {
	var added []string
	for _, c := range in.Changes {
		if c.Old.Mode == 0 && c.New.Mode != 0 {
			added = append(added, c.Path)
		}
	}
	if p.ignores == nil || len(added) == 0 {
		return nil
	}
	rules, err := p.ignores.Ignored(ctx, added)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, path := range added {
		switch rule, covered := rules[path]; {
		case err != nil: // what an agent wrote must not keep the gate from an answer
			r.at(path, "git cannot say whether your ignore rules cover it: %v", err)
		case covered:
			r.at(path, "you ignore it (%s)", rule)
		}
	}
	return nil
}
