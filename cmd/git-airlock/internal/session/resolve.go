package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// situation is what a request is resolved for. In another one the result is worth nothing.
type situation struct {
	id   string      // of the airlock that is here; empty for none
	runs bool        // its prison does
	base gitops.Head // what a new airlock is a snapshot of
	tree gitops.OID  // what the setup of an airlock that does not run is read from; empty if its branch is gone
}

// situation looks at what is here, nil for no airlock.
func (s *Session) situation(ctx context.Context, here *airlock.Record) (now situation, err error) {
	if here == nil {
		now.base, err = s.base(ctx)
		now.tree = now.base.Tree
		return now, err
	}
	now.id = here.ID
	if now.runs, err = s.prisons().runs(ctx, *here); err != nil || now.runs {
		return now, err
	}
	now.tree, err = s.treeOf(ctx, here.Branch)
	return now, err
}

// treeOf returns what a branch holds, empty if there is none of that name any more.
func (s *Session) treeOf(ctx context.Context, branch string) (gitops.OID, error) {
	tip, err := s.Repo.Ref(ctx, branch)
	if err != nil || tip == "" {
		return "", err
	}
	return s.Repo.Tree(ctx, tip)
}

// resolved is what a request comes to in a situation. It is made before other commands are locked out, since an image may
// have to be built for it, and carried out under the lock if the situation is still the same.
type resolved struct {
	session *Session
	Request
	situation
	setup environment.Setup
	// What goes in beside a snapshot, and the search for secrets in all of that.
	include []gitops.UserFile
	secrets *screening
	// airlock is the record as it is to be: of the one that is here, or of a new one without an id.
	airlock airlock.Record
}

// resolve decides what a request comes to for the airlock that is here, nil for a new one.
func (s *Session) resolve(ctx context.Context, here *airlock.Record, now situation, q Request) (c resolved, err error) {
	c = resolved{session: s, Request: q, situation: now}
	if here != nil {
		c.airlock = *here
		c.Recipe = q.Recipe && here.Settings["airlock.recipe"] != "false"
	}
	if now.runs {
		c.compareSetup(ctx)
		return c, nil
	}
	if _, err := promote.ReadSettings(s.Config.With(c.airlock.Settings).With(q.Overrides)); err != nil {
		return c, err
	}
	if here == nil {
		if c.include, err = s.Environment().Include(ctx); err != nil {
			return c, err
		}
		c.secrets = s.screen(ctx, now.base, c.include, q.AllowSecrets)
	}
	if c.Recipe && now.tree != "" {
		if c.setup, err = s.Environment().Obey(ctx, now.tree, c.asksForImages() && q.Image == ""); err != nil {
			return c, err
		}
	}
	if here != nil {
		err = c.keepBackend(ctx)
	} else {
		err = c.chooseBackend(ctx)
	}
	if err != nil {
		return c, err
	}
	if err := s.Environment().Agree(ctx, c.setup, c.airlock.Built); err != nil {
		return c, err
	}
	if c.airlock.Setup = nil; c.setup.File != "" {
		c.airlock.Setup = &airlock.Setup{File: c.setup.File, Digest: c.setup.Digest, Names: c.setup.Names, Env: s.Environment().Variables(c.setup, q.Dotenv)}
	}
	if !s.prisons().traits(c.airlock).Images {
		s.Environment().WarnUnused(c.setup)
	}
	return c, c.fill()
}

// compareSetup looks for what has changed in the setup of a prison that runs. Nothing about it is a reason not to heal the
// rest.
func (c *resolved) compareSetup(ctx context.Context) {
	if !c.Recipe {
		return
	}
	tree, err := c.session.treeOf(ctx, c.airlock.Branch)
	if err == nil && tree != "" {
		c.setup, err = c.session.Environment().Obey(ctx, tree, c.asksForImages() && c.Image == "")
	}
	if err != nil && ctx.Err() == nil {
		c.session.Report.Say("%s", gitops.Escape(err.Error()))
	}
	if err != nil {
		c.setup = environment.Setup{}
	}
}

// changed reports whether the setup is another one than a prison was made for.
func (c resolved) changed(made *airlock.Setup) bool {
	return c.setup.File != "" && (made == nil || made.Digest != c.setup.Digest)
}

// fill writes into the record what options and settings say of the prison.
func (c *resolved) fill() (err error) {
	r := &c.airlock
	r.Isolation.Network, r.Isolation.Limits = c.Isolation.Network, c.Isolation.Limits
	if r.Env, err = c.environment(r.Env); err != nil {
		return err
	}
	if len(c.Tools) > 0 {
		r.Tools = c.Tools
	}
	r.Rootfs = cmp.Or(c.Rootfs, r.Rootfs)
	r.Settings = maps.Clone(r.Settings)
	if r.Settings == nil {
		r.Settings = map[string]string{}
	}
	maps.Copy(r.Settings, c.Overrides)
	return nil
}

// onto returns a record with what was resolved for it.
func (c resolved) onto(r airlock.Record) airlock.Record {
	chosen := c.airlock
	r.Backend, r.Reason, r.Image, r.Runtime, r.Built, r.Setup = chosen.Backend, chosen.Reason, chosen.Image, chosen.Runtime, chosen.Built, chosen.Setup
	r.Isolation.Network, r.Isolation.Limits = chosen.Isolation.Network, chosen.Isolation.Limits
	r.Env, r.Tools, r.Rootfs, r.Settings = chosen.Env, chosen.Tools, chosen.Rootfs, chosen.Settings
	return r
}

// asksForImages reports whether the backend that was asked for makes prisons of images.
func (q Request) asksForImages() bool {
	b := backendNamed(q.Backend)
	return b != nil && b.Traits("").Images
}

// chooseBackend chooses the backend of a new airlock and makes sure that it works here.
func (c *resolved) chooseBackend(ctx context.Context) error {
	asked := backendNamed(c.Backend)
	switch {
	case c.asksForImages():
		return c.chooseContainer(ctx, "asked for")
	case asked != nil && c.ImageGiven:
		return requestErrorf("the %s backend has no images and runtimes; leave --backend out, or say --backend %s", asked.Name(), containers.Name())
	case asked != nil:
		return c.choosePlain(ctx, "asked for")
	case c.Image != "", c.setup.WantsTools():
		err := containers.Probe(ctx)
		if err == nil {
			return c.chooseContainer(ctx, c.wish()+" and an engine answers")
		}
		return c.withoutEngine(ctx, err)
	case c.ImageGiven: // a runtime only
		return errNoImage
	}
	err := c.choosePlain(ctx, "no image was asked for and namespaces work here")
	if err == nil && c.Runtime != "" {
		c.session.Report.Say("runtime %s is not used: no image was asked for, and native prisons share the kernel of this machine", gitops.Escape(c.Runtime))
	}
	var unavailable *prison.Unavailable
	if errors.As(err, &unavailable) && containers.Probe(ctx) == nil {
		if c.setup.File != "" {
			return c.chooseContainer(ctx, fmt.Sprintf("%s, and an engine answers", err))
		}
		return environment.Advise(requestErrorf("%s; a container engine answers, but there is no image to use", err), imageHints...)
	}
	return err
}

// wish says who asked for a container.
func (c *resolved) wish() string {
	if c.Image == "" {
		return c.setup.File + " asks for tools"
	}
	return "an image was asked for"
}

// withoutEngine takes the backend without images for somebody who asked for an image and has no engine, and says so, unless they
// asked for a runtime, too. The tools that are asked for may be there all the same.
func (c *resolved) withoutEngine(ctx context.Context, missing error) error {
	if c.Runtime != "" { // another kernel was asked for, which no native prison has
		return missing
	}
	if err := c.choosePlain(ctx, fmt.Sprintf("%s, but %s", c.wish(), missing)); err != nil {
		return errors.Join(missing, err)
	}
	if c.Image == "" {
		return nil
	}
	c.session.Report.Say("image %s is not used: %s", gitops.Escape(c.Image), gitops.Escape(missing.Error()))
	return nil
}

var (
	imageHints = []string{"git airlock start --image <image>  # one with git and a shell", "git config airlock.image <image>"}
	errNoImage = environment.Advise(requestErrorf("the docker backend wants an image to make containers of, or a %s to build one", recipe.FileName), imageHints...)
)

func (c *resolved) choosePlain(ctx context.Context, reason string) error {
	b, r := plain(), &c.airlock
	r.Backend, r.Reason, r.Image, r.Runtime = b.Name(), reason, "", ""
	return b.Probe(ctx)
}

// chooseContainer takes the image that was asked for, or the one that the setup describes.
func (c *resolved) chooseContainer(ctx context.Context, reason string) (err error) {
	r := &c.airlock
	r.Backend, r.Reason, r.Image, r.Runtime, r.Built = containers.Name(), reason, c.Image, c.Runtime, false
	if c.Image == "" && c.setup.File == "" {
		return errNoImage
	}
	if err := containers.Probe(ctx); err != nil {
		return err
	}
	if c.Image == "" {
		r.Built = true
		if err := c.session.Environment().Agree(ctx, c.setup, true); err != nil {
			return err
		}
		// Nobody should wait for an image that is for nothing.
		if err := c.secrets.verdict(c.session.Report); err != nil {
			return err
		}
		if r.Image, err = c.session.Environment().Image(ctx, c.setup); err != nil || c.session.Dry {
			return err
		}
	}
	return containers.CheckImage(ctx, r.Image)
}

// keepBackend keeps the backend of an airlock that is started again: its writable files are there. The reason stays, too.
func (c *resolved) keepBackend(ctx context.Context) error {
	r, own := &c.airlock, c.session.prisons().backend(c.airlock)
	if c.BackendGiven && c.Backend != "auto" && c.Backend != r.Backend {
		return &environment.Refusal{Text: fmt.Sprintf("this airlock has the backend %s", r.Backend), Next: []string{"git airlock start", "git airlock clear"}}
	}
	images := own.Traits("").Images
	if !images && c.ImageGiven {
		return &environment.Refusal{Text: "this airlock has no image", Next: []string{"git airlock start", "git airlock clear"}}
	}
	if !c.ImageGiven {
		c.Image, c.Runtime = "", r.Runtime
	}
	anew := r.Built && c.Image == "" && c.setup.File != ""
	if images {
		if done, err := c.keepEngine(ctx, *r, anew || c.ImageGiven); done || err != nil {
			return err
		}
	}
	switch {
	case anew:
		return c.chooseContainer(ctx, r.Reason)
	case !c.ImageGiven:
		return own.Probe(ctx)
	}
	c.Image = cmp.Or(c.Image, r.Image)
	return c.chooseContainer(ctx, r.Reason)
}

// keepEngine stays with the engine that an airlock's container is on, also when the user's settings name another one since. An
// image would be looked for there: that is refused.
func (c *resolved) keepEngine(ctx context.Context, r airlock.Record, image bool) (done bool, err error) {
	spec, err := c.session.prisons().spec(r)
	if err != nil {
		return false, err
	}
	its, now, err := containers.Host(spec.Dir)
	switch {
	case err != nil || its == now:
		return false, err
	case !image:
		return true, containers.ProbeOf(ctx, spec.Dir)
	}
	return false, &environment.Refusal{
		Text: fmt.Sprintf("the container of this airlock is on the engine at %s, and the one in use now is at %s", its, now),
		Next: []string{"DOCKER_HOST=" + gitops.ShellQuote(its) + " git airlock start", "git airlock clear"}}
}

// Request is what somebody wants an airlock to be. It says nothing of the situation: what the two come to is resolved by
// [Session.Start].
type Request struct {
	Backend      string // the name of one, or "auto"
	BackendGiven bool   // for this call, not by a setting

	Image, Runtime string
	ImageGiven     bool // one of the two, for this call

	Isolation airlock.Isolation // network and limits
	Tools     []airlock.Tool
	Rootfs    string

	Env      []string          // for this call, as NAME=VALUE
	EnvKey   string            // the setting that UsualEnv is from
	UsualEnv []string          // by a setting, as NAME or NAME=VALUE; a prison that runs already is not asked for them
	Dotenv   map[string]string // the user's .env file

	Inside       bool              // the workspace is a folder of the work tree
	Recipe       bool              // obey the repository's own description of its environment
	AllowSecrets bool              // take them in
	Selftest     bool              // refuse a prison that does not keep its promises
	Overrides    map[string]string // settings of promotion for as long as the airlock lives
	Command      []string          // to launch; nil for none

	Given []string // the options of this call, to be named
	Typed []string // the same with their values, to be typed again
}

// environment returns the variables of a prison beside those of its recipe, which had others before. Env replaces all previous
// values; UsualEnv replaces only the names it lists, and keeps the previous value of a name that is unset now.
func (q Request) environment(before []string) ([]string, error) {
	if len(q.Env) > 0 {
		return q.Env, nil
	}
	known := map[string]string{}
	for _, v := range before {
		name, value, _ := strings.Cut(v, "=")
		known[name] = value
	}
	maps.Copy(known, q.Dotenv)
	env, err := CompleteEnv(q.EnvKey, q.UsualEnv, known)
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		delete(known, name)
	}
	kept := slices.DeleteFunc(slices.Clone(before), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, kept := known[name]
		return !kept
	})
	return append(kept, env...), err
}

// CompleteEnv completes NAME to NAME=VALUE from the caller's environment or their .env file. source says where the names are
// listed.
func CompleteEnv(source string, listed []string, dotenv map[string]string) ([]string, error) {
	var env []string
	for _, v := range listed {
		name, _, valued := strings.Cut(v, "=")
		if !environment.VariableName.MatchString(name) {
			return nil, requestErrorf("%s: %q is not the name of a variable", source, escape(name))
		}
		if !valued {
			value, set := environment.HostVariable(name, dotenv)
			if !set {
				return nil, requestErrorf("%s: %s is set neither here nor in %s", source, name, environment.DotenvName)
			}
			v = name + "=" + value
		}
		env = append(env, v)
	}
	return env, nil
}
