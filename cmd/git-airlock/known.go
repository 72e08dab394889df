package main

import (
	"context"
	"io"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// known is what completion knows of the repository: it looks and touches nothing, and what cannot be read is not known.
type known struct {
	ctx context.Context
	app *app
}

// candidate is what a word can become, and what that is.
type candidate struct{ text, about string }

// look opens the repository here, if there is one that git may look into.
func (k *known) look() *app {
	if k.app != nil {
		return k.app
	}
	cwd, err := workingFolder()
	if err != nil || insideWorkspace(k.ctx, cwd) {
		return nil
	}
	repo, err := gitops.OpenCurrent(k.ctx, cwd)
	if err != nil {
		return nil
	}
	repo.DryRun()
	a := &app{repo: repo, store: airlock.Open(repo), dry: true, out: io.Discard, message: io.Discard}
	if a.config, err = repo.Config(k.ctx); err != nil {
		return nil
	}
	k.app = a
	return a
}

// airlocks are those of the repository.
func (k *known) airlocks() []airlock.Record {
	a := k.look()
	if a == nil {
		return nil
	}
	records, _ := a.store.List()
	return records
}

// engine is that of the airlock here, to be closed; nil if there is none.
func (k *known) engine() *promote.Engine {
	a := k.look()
	if a == nil {
		return nil
	}
	r, err := a.store.Here()
	if err != nil || r == nil || r.Phase != airlock.Running && r.Phase != airlock.Stopped {
		return nil
	}
	return a.engine(*r)
}

// held are the findings that --accept would let pass, with the path where that says more.
func (k *known) held() []candidate {
	engine := k.engine()
	if engine == nil {
		return nil
	}
	defer engine.Close()
	judged, err := engine.Judged(k.ctx)
	if err != nil {
		return nil
	}
	var all []candidate
	seen := map[string]bool{}
	add := func(text, about string) {
		// A path that is shown escaped is not to be typed like this.
		if !seen[text] && gitops.Escape(text) == text {
			all = append(all, candidate{text, about})
		}
		seen[text] = true
	}
	for _, v := range judged.Held {
		for _, f := range v.Findings {
			if f.Action != policy.Hold {
				continue
			}
			add(f.Rule, f.Detail)
			for _, p := range f.Paths {
				add(f.Rule+":"+p, f.Detail)
			}
		}
	}
	return all
}

// acceptableRules are those whose findings can be accepted.
func acceptableRules() []candidate {
	var all []candidate
	for _, d := range policy.Rules() {
		if d.Key != "" {
			all = append(all, candidate{d.ID, d.Doc})
		}
	}
	return all
}

// candidatesShown bounds how many commits and refs are offered.
const candidatesShown = 100

// pending are the commits that wait, newest first.
func (k *known) pending() []candidate {
	a := k.look()
	engine := k.engine()
	if engine == nil {
		return nil
	}
	defer engine.Close()
	commits, err := a.repo.Summaries(k.ctx, candidatesShown, engine.Record.Ref("promoted")+".."+engine.Record.Ref("pending"))
	if err != nil {
		return nil
	}
	return summaries(commits)
}

// inner are the inner branches that do not land by themselves.
func (k *known) inner() []candidate {
	engine := k.engine()
	if engine == nil {
		return nil
	}
	defer engine.Close()
	state, err := engine.State(k.ctx)
	if err != nil {
		return nil
	}
	var all []candidate
	for _, w := range state.Waiting {
		if gitops.Escape(w.Name) == w.Name {
			all = append(all, candidate{strings.TrimPrefix(w.Name, "refs/heads/"), count(w.Commits, "commit")})
		}
	}
	return all
}

// branches are the repository's own.
func (k *known) branches() []candidate {
	a := k.look()
	if a == nil {
		return nil
	}
	branches, err := a.repo.Branches(k.ctx, candidatesShown)
	if err != nil {
		return nil
	}
	return summaries(branches)
}

func summaries(of []gitops.Summary) []candidate {
	var all []candidate
	for _, s := range of {
		all = append(all, candidate{s.Name, s.Subject})
	}
	return all
}
