package main

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
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
		if w.Name != "" && gitops.Escape(w.Name) == w.Name {
			all = append(all, candidate{strings.TrimPrefix(w.Name, "refs/heads/"), count(w.Commits, "commit")})
		}
	}
	return all
}

// refs are those of the repository below one.
func (k *known) refs(below string) []candidate {
	a := k.look()
	if a == nil {
		return nil
	}
	refs, err := a.repo.RefNames(k.ctx, candidatesShown, below)
	if err != nil {
		return nil
	}
	return summaries(refs)
}

// variables are those of the user's environment, and of their .env file.
func (k *known) variables() (all []candidate) {
	if a := k.look(); a != nil {
		own, _ := a.dotenv()
		for _, name := range slices.Sorted(maps.Keys(own)) {
			all = append(all, candidate{name, "of " + dotenvName})
		}
	}
	for _, name := range hostenv.Names() {
		all = append(all, candidate{name, ""})
	}
	return all
}

// enginePatience is how long somebody who has pressed a key waits for a container engine.
const enginePatience = time.Second

// images are those of the container engine, if there is one that answers.
func (k *known) images() []candidate { return k.ofEngine(containers.ImageNames) }

// runtimes are the engine's.
func (k *known) runtimes() []candidate { return k.ofEngine(containers.Runtimes) }

func (k *known) ofEngine(ask func(context.Context) ([]string, error)) (all []candidate) {
	ctx, cancel := context.WithTimeout(k.ctx, enginePatience)
	defer cancel()
	names, err := ask(ctx)
	if err != nil {
		return nil
	}
	for _, name := range names[:min(len(names), candidatesShown)] {
		if gitops.Escape(name) == name {
			all = append(all, candidate{name, ""})
		}
	}
	return all
}

func summaries(of []gitops.Summary) []candidate {
	var all []candidate
	for _, s := range of {
		all = append(all, candidate{s.Name, s.Subject})
	}
	return all
}
