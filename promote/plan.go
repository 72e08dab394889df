package promote

import (
	"context"
	"errors"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// planned is a plan and the inner commit at which the landing ends.
type planned struct {
	*history.Plan
	target gitops.OID // empty if everything may land
}

func (p planned) entered(o ledger.Outcome) ledger.Outcome {
	o.Inner, o.Target, o.Dropped, o.Waits = p.Tip, p.target, p.Dropped, p.Waits
	return o
}

// plan collects the facts of the plan and makes it.
func (e *Engine) plan(ctx context.Context, f facts, t taken) (planned, error) {
	links, brought, err := e.unlanded(ctx, f, t.tip)
	if err != nil {
		return planned{}, err
	}
	p, err := history.New(ctx, history.Facts{Tip: t.tip, Links: links, Brought: brought, Ledger: f.ledger, Decisions: f.rules.decisions},
		f.quarantine, e.Repo)
	if err != nil || f.options.UpTo == "" {
		return planned{p, ""}, err
	}
	revision, _ := e.Repo.Commit(ctx, f.options.UpTo)
	target, err := p.Target(f.options.UpTo, revision, f.options.target)
	return planned{p, target}, err
}

// unlanded lists the commits that an inner commit reaches and that have not landed. It also returns the inner commits
// that are commits of the user's branch: those exist outside and do not land again.
func (e *Engine) unlanded(ctx context.Context, f facts, tip gitops.OID) ([]quarantine.Link, map[gitops.OID]bool, error) {
	brought := map[gitops.OID]bool{}
	links, err := f.inside.History(ctx, tip, func(id gitops.OID) bool {
		if f.ledger.Has(id) {
			return true
		}
		outside := id == f.ledger.Base.Outer || f.ledger.HasOuter(id)
		if outside {
			brought[id] = true
		}
		return outside
	}, f.settings.Limits)
	if errors.Is(err, quarantine.ErrMany) {
		links, err = f.quarantine.History(ctx, tip, []gitops.OID{f.ledger.Base.Inner, f.ledger.Last().Inner})
		links = slices.DeleteFunc(links, func(l quarantine.Link) bool { return f.ledger.Has(l.Commit) })
	}
	if err != nil {
		return nil, nil, err
	}
	if err = e.addBrought(ctx, f, links, brought); err != nil {
		return nil, nil, err
	}
	return slices.DeleteFunc(links, func(l quarantine.Link) bool { return brought[l.Commit] }), brought, nil
}

// addBrought adds the links that are commits of the user's branch. Any such history ends in the base, in a landed
// commit, or in a root of its own. If the links contain none of these, no git process is started.
func (e *Engine) addBrought(ctx context.Context, f facts, links []quarantine.Link, brought map[gitops.OID]bool) error {
	rootless := func(l quarantine.Link) bool { return len(l.Parents) == 0 }
	if len(links) == 0 || len(brought) == 0 && !slices.ContainsFunc(links, rootless) {
		return nil
	}
	var commits []gitops.OID
	for _, l := range links {
		commits = append(commits, l.Commit)
	}
	there, err := e.Repo.Present(ctx, commits)
	if err != nil || len(there) == 0 {
		return err
	}
	branch := []gitops.OID{f.refs.onto(), f.refs.promoted, f.ledger.Base.Outer}
	if f.refs.tip != "" {
		past, err := e.Repo.Past(ctx, e.Record.Branch) // the agent does not become the author of commits that the user threw away
		if err != nil {
			return err
		}
		branch = append(branch, past...)
	}
	for id := range brought {
		branch = append(branch, id)
	}
	others, err := e.Repo.Unreached(ctx, there, branch)
	var failed *gitops.Error
	if errors.As(err, &failed) {
		return nil // an object of these commits is missing, so that they are on no branch
	}
	if err != nil {
		return err
	}
	for _, id := range there {
		if !slices.Contains(others, id) {
			brought[id] = true
		}
	}
	return nil
}
