package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// choice is what options, settings and setup come to. It is made before other commands are locked out, since an
// image may have to be built for it.
type choice struct {
	setup commitSetup
	base  gitops.Head // what a new airlock is to be a snapshot of
	// What goes in beside it, and the search for secrets in all of that.
	loose   []gitops.UserFile
	secrets *screening
	// airlock is the one chosen for, a new one without an id: its backend, image, runtime and setup are as chosen.
	airlock airlock.Record
	glance  bool // the prison runs: nothing was decided about it
}

// settle makes the choice for the airlock that is here, nil for a new one.
func (a *app) settle(ctx context.Context, here *airlock.Record, q startRequest) (c choice, err error) {
	var tree gitops.OID
	if here != nil {
		if runs, err := a.prisonRuns(ctx, *here); err != nil || runs {
			return a.glance(ctx, *here, q), err
		}
		c.airlock = *here
		if _, err := promote.ReadSettings(a.config.With(here.Settings).With(q.overrides)); err != nil {
			return c, err
		}
		q.recipe = q.recipe && here.Settings["airlock.recipe"] != "false"
		if tree, err = a.treeOf(ctx, here.Branch); err != nil {
			return c, err
		}
	} else {
		if c.base, err = a.base(ctx); err != nil {
			return c, err
		}
		if _, err := promote.ReadSettings(a.config.With(q.overrides)); err != nil {
			return c, err
		}
		if c.loose, err = a.included(ctx); err != nil {
			return c, err
		}
		c.secrets = a.screen(ctx, c.base, c.loose, q.secrets)
		q.choice.secrets = c.secrets
		tree = c.base.Tree
	}
	if q.recipe && tree != "" {
		if c.setup, err = a.obey(ctx, tree, q); err != nil {
			return c, err
		}
	}
	if here != nil {
		err = a.keep(ctx, &c.airlock, q, c.setup)
	} else {
		err = a.choose(ctx, &c.airlock, q, c.setup)
	}
	if err != nil {
		return c, err
	}
	if err := a.agreed(ctx, c.setup, c.airlock.Built); err != nil {
		return c, err
	}
	c.airlock.Setup = a.keptSetup(c.setup, q)
	a.unused(c)
	return c, nil
}

// glance looks for what has changed in the setup of a prison that runs. Nothing about it is a reason not to heal
// the rest.
func (a *app) glance(ctx context.Context, here airlock.Record, q startRequest) choice {
	c := choice{airlock: here, glance: true}
	if !q.recipe || here.Settings["airlock.recipe"] == "false" {
		return c
	}
	tree, err := a.treeOf(ctx, here.Branch)
	if err == nil && tree != "" {
		c.setup, err = a.obey(ctx, tree, q)
	}
	if err != nil && ctx.Err() == nil {
		ui.Say(a.message, "%s", gitops.Escape(err.Error()))
	}
	if err != nil {
		return c
	}
	if c.setup.file != "" {
		c.airlock.Setup = &airlock.Setup{Digest: c.setup.digest}
	}
	return c
}

// treeOf is what a branch holds, empty if there is none of that name any more.
func (a *app) treeOf(ctx context.Context, branch string) (gitops.OID, error) {
	tip, err := a.repo.Ref(ctx, branch)
	if err != nil || tip == "" {
		return "", err
	}
	return a.repo.Tree(ctx, tip)
}

// obey reads the setup of a tree. A devcontainer was written for other programs: if it cannot be used, or may not
// be, the airlock does without.
func (a *app) obey(ctx context.Context, tree gitops.OID, q startRequest) (commitSetup, error) {
	s, err := a.readSetup(ctx, tree)
	var wrong recipe.Errors
	if errors.As(err, &wrong) && wrong[0].File == recipe.DevcontainerName {
		ui.Say(a.message, "%s is not used: %s", recipe.DevcontainerName, gitops.Escape(err.Error()))
		return commitSetup{}, nil
	}
	if err != nil {
		return s, err
	}
	a.uncommitted(s)
	if !s.devcontainer() {
		return s, nil
	}
	wishes := s.wishes(true)
	yes, err := a.consents(ctx, s, wishes)
	switch {
	case err != nil:
		return s, err
	case yes:
		if len(s.ignored) > 0 {
			ui.Say(a.message, "%s: ignored: %s", s.file, gitops.Escape(strings.Join(s.ignored, ", ")))
		}
		return s, nil
	case q.backend == containers.Name() && q.image == "":
		return s, s.noConsent(wishes)
	}
	if refused, err := a.refused(ctx, s); err != nil || refused {
		return commitSetup{}, err
	}
	ui.Say(a.message, "%s is not used without your consent", s.file)
	ui.Hint(a.message, s.consentHint())
	return commitSetup{}, nil
}

// agreed makes sure of the consent to what a setup asks for.
func (a *app) agreed(ctx context.Context, s commitSetup, container bool) error {
	wishes := s.wishes(container)
	yes, err := a.consents(ctx, s, wishes)
	if err == nil && !yes {
		err = s.noConsent(wishes)
	}
	return err
}

// keptSetup is what the record keeps of a setup: the environment as it is now, and what the gate has to know.
func (a *app) keptSetup(s commitSetup, q startRequest) *airlock.Setup {
	if s.file == "" {
		return nil
	}
	kept := &airlock.Setup{File: s.file, Digest: s.digest, Names: s.names}
	for _, name := range slices.Sorted(maps.Keys(s.Env.Set)) {
		kept.Env = append(kept.Env, name+"="+s.Env.Set[name])
	}
	for _, name := range s.Env.Pass {
		if value, set := hostVariable(name, q.dotenv); set {
			kept.Env = append(kept.Env, name+"="+value)
		} else {
			ui.Say(a.message, "%s: %s is not set here and not passed", s.file, name)
		}
	}
	return kept
}

// differs tells whether a prison that was made for one setup is not as another one would have it.
func differs(made, now *airlock.Setup) bool {
	return now != nil && (made == nil || made.Digest != now.Digest)
}

// unused says what of a setup a backend without images does not give.
func (a *app) unused(c choice) {
	if c.airlock.Backend == containers.Name() {
		return
	}
	for _, from := range []string{c.setup.OS.Base, c.setup.OS.Dockerfile} {
		if from != "" {
			ui.Say(a.message, "%s: %s is not used: a native prison has this machine's system", c.setup.file, gitops.Escape(from))
		}
	}
}

// stale refuses a choice that was made for another setup than the base has by now: an image takes its time.
func (a *app) stale(ctx context.Context, q startRequest, base gitops.Head) error {
	if !q.recipe || base.Tree == q.choice.base.Tree {
		return nil
	}
	now, err := a.readSetup(ctx, base.Tree)
	if err != nil || now.digest == q.choice.setup.digest || q.choice.setup.file == "" && now.devcontainer() {
		return err
	}
	return &refusal{"the branch was changed while its environment was made", []string{"git airlock start"}}
}
