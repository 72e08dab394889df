package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/inbound"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/settings"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/attest"
	"github.com/git-airlock/git-airlock/words"
)

// situation is the state for which a request is resolved. If it changes, the request must be resolved again.
type situation struct {
	id   string      // the id of the airlock here; empty for none
	runs bool        // its prison is running
	base gitops.Head // the commit of a new airlock's snapshot
	tree gitops.OID  // the tree with the setup of an airlock that is not running; empty if its branch is gone
}

// situation reads the present state. here is nil for no airlock.
func (s *Session) situation(ctx context.Context, here *airlock.Record) (now situation, err error) {
	if here == nil {
		now.base, err = inbound.Base(ctx, s.Repo, s.Config)
		now.tree = now.base.Tree
		return now, err
	}
	now.id = here.ID
	if now.runs, err = s.Prisons().Runs(ctx, *here); err != nil || now.runs {
		return now, err
	}
	now.tree, err = treeOf(ctx, s.Repo, here.Branch)
	return now, err
}

// treeOf returns the tree of a branch's tip. It is empty if the branch does not exist any more.
func treeOf(ctx context.Context, repo *gitops.Repository, branch string) (gitops.OID, error) {
	tip, err := repo.Ref(ctx, branch)
	if err != nil || tip == "" {
		return "", err
	}
	return repo.Tree(ctx, tip)
}

// resolved is a request with all decisions made for a situation. It is made before the lock is taken, because it may require an
// image to be built. It is carried out under the lock if the situation is still the same.
type resolved struct {
	session *Session
	Request
	situation
	setup environment.Setup
	// The untracked files to copy into the workspace, and the search for secrets in them and in the snapshot.
	include []inner.UserFile
	secrets *inbound.Screening
	// airlock is the new record: of the airlock here, or of a new one without an id.
	airlock airlock.Record
	// variables are the variables of the user, and setupEnv those of the setup. They have values, which no record stores.
	variables []environment.Variable
	setupEnv  []string
	rules     control.Rules       // of the network; empty if the prison is running
	watched   prisons.Watched     // how its programs are watched; empty if it is running
	keys      []secret.Secret     // the values of the credentials in rules, and the password of a proxy
	ended     error               // the agent's login has ended; nil if it has not
	tried     func() (any, error) // waits for a trial of the backend without images; nil if none has begun
}

// resolve makes all decisions of a request. here is the airlock of this worktree, or nil for a request that makes a new one.
func (s *Session) resolve(ctx context.Context, here *airlock.Record, now situation, q Request) (c resolved, err error) {
	c = resolved{session: s, Request: q, situation: now}
	if here != nil {
		c.airlock = *here
		c.Rules = q.Rules.After(here.Rules)
		c.Recipe = q.Recipe && settings.ObeysRecipe(here.Settings, q.Overrides)
	}
	if err := settings.Check(s.Config.With(c.kept())); err != nil && (!now.runs || q.launchesSome()) {
		return c, err
	}
	c.sayLander()
	if now.runs {
		c.compareSetup(ctx)
		return c, nil
	}
	if here == nil && c.Image == "" && !c.ImageGiven && !c.asksForImages() { // try the backend that chooseBackend takes, unless the setup wants tools
		c.tried = inBackground(func() (any, error) { return nil, prisons.Plain().Probe(ctx) })
		defer c.tried() //nolint:errcheck // choosePlain returns the error
	}
	if err := c.readRules(ctx); err != nil {
		return c, err
	}
	if err := c.readVariables(); err != nil {
		return c, err
	}
	if here == nil {
		if c.include, err = s.Environment().Include(ctx); err != nil {
			return c, err
		}
		c.secrets = inbound.Screen(ctx, s.Environment(), now.base, c.include, q.AllowSecrets)
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
		c.setupEnv = s.Environment().Variables(c.setup, q.Dotenv)
		c.airlock.Setup = &airlock.Setup{File: c.setup.File, Digest: c.setup.Digest, Names: c.setup.Names, Variables: environment.NamesIn(c.setupEnv)}
	}
	if !s.Prisons().Traits(c.airlock).Images {
		s.Environment().WarnUnused(c.setup)
	}
	if err = c.addAgent(); err == nil {
		c.fill()
		err = c.watchPrograms(ctx)
	}
	return c, err
}

// watchPrograms decides how the prison's programs are watched, and checks where they come from. The backend and the prison check that too, but
// a dry run does not start them.
func (c *resolved) watchPrograms(ctx context.Context) error {
	err := c.session.Prisons().CheckShared(c.airlock)
	if c.airlock.Rootfs == "/" { // the default
		c.airlock.Rootfs = ""
	}
	if err == nil && c.airlock.Rootfs != "" {
		err = environment.CheckFolder(c.airlock.Rootfs)
	}
	if err == nil {
		c.watched, err = c.session.Prisons().Watched(ctx, c.airlock)
	}
	return err
}

// sayLander reports a missing key, and the author of what lands if an earlier start was given another one than git has now. A running airlock
// keeps its settings.
func (c *resolved) sayLander() {
	c.saySigner()
	s, kept := c.session, gitops.Config(c.airlock.Settings)
	again := "git -c airlock.name= -c airlock.email= airlock start  # after a stop"
	if c.runs {
		again = "git airlock stop  # and the same command again"
	} else {
		kept = c.kept()
	}
	who, err := s.lander(airlock.Record{Settings: kept})
	if err != nil {
		s.Report.Say("nothing lands: %s", err)
		s.Report.Hint(Next(err)...)
		return
	}
	if now, err := identity.ResolveUser(s.Config); err == nil && now != who {
		s.Report.Say("commits land as %s, as an earlier start was told, and not as %s", gitops.Text(who.String()), gitops.Text(now.String()))
		s.Report.Hint(again)
	}
}

// saySigner reports that no commit can be signed, if that is known without a trial.
func (c *resolved) saySigner() {
	config := c.session.Config.With(c.kept())
	if key := attest.MissingKey(config, c.session.Repo.Top); key != "" {
		c.session.Report.Say("nothing lands: airlock.sign is true, and the key of user.signingKey, %s, does not exist", gitops.Text(key))
		c.session.Report.Hint("git config --show-origin --get-all user.signingKey")
	}
}

// compareSetup checks whether the setup of a running prison has changed. It ignores errors, so that they do not stop the repair of the airlock.
func (c *resolved) compareSetup(ctx context.Context) {
	if !c.Recipe {
		return
	}
	tree, err := treeOf(ctx, c.session.Repo, c.airlock.Branch)
	if err == nil && tree != "" {
		c.setup, err = c.session.Environment().Obey(ctx, tree, c.asksForImages() && c.Image == "")
	}
	if err != nil && ctx.Err() == nil {
		c.session.Report.Say("%s", err)
	}
	if err != nil {
		c.setup = environment.Setup{}
	}
}

// fill writes the options and settings of the prison into the record.
func (c *resolved) fill() {
	r := &c.airlock
	r.Isolation.Network, r.Isolation.Limits, r.Rules = c.Isolation.Network, c.Isolation.Limits, c.Rules
	if len(c.Tools) > 0 {
		r.Tools = c.Tools
	}
	r.Rootfs = cmp.Or(c.Rootfs, r.Rootfs)
	r.Settings = c.kept()
}

// kept returns the settings that the airlock keeps: those of earlier starts, and those of this one, which win.
func (c *resolved) kept() gitops.Config {
	return gitops.Config{}.With(c.airlock.Settings).With(c.Overrides)
}

// onto returns a record with the resolved values.
func (c resolved) onto(r airlock.Record) airlock.Record {
	chosen := c.airlock
	r.Backend, r.Reason, r.Image, r.Runtime, r.Built, r.Setup = chosen.Backend, chosen.Reason, chosen.Image, chosen.Runtime, chosen.Built, chosen.Setup
	r.Isolation.Network, r.Isolation.Limits, r.Rules = chosen.Isolation.Network, chosen.Isolation.Limits, chosen.Rules
	r.Variables, r.Tools, r.Rootfs, r.Settings = chosen.Variables, chosen.Tools, chosen.Rootfs, chosen.Settings
	return r
}

// Alone returns the record of an airlock as a start would make one here, for a check without an airlock: with the system and the limits
// of the settings and the recipe, and without a network and variables. It is stored nowhere.
func (s *Session) Alone(ctx context.Context, q Request) (airlock.Record, error) {
	head, err := s.Repo.Head(ctx)
	if err != nil {
		return airlock.Record{}, err
	}
	q.Isolation.Network, q.UsualEnv, q.Rules = prison.NetworkNone.String(), nil, airlock.Rules{}
	c, err := s.resolve(ctx, nil, situation{base: head, tree: head.Tree}, q)
	return c.onto(airlock.Record{ID: airlock.NoID, Top: s.Repo.Top, Format: s.Repo.Format, Ghost: identity.NewGhost()}), err
}

// asksForImages reports whether the requested backend makes prisons from images.
func (q Request) asksForImages() bool {
	b := prisons.Named(q.Backend)
	return b != nil && b.Traits("").Images
}

// chooseBackend chooses the backend of a new airlock, and checks that it works here.
func (c *resolved) chooseBackend(ctx context.Context) error {
	asked := prisons.Named(c.Backend)
	switch {
	case c.asksForImages():
		return c.chooseContainer(ctx, "requested")
	case asked != nil && c.ImageGiven:
		return requestErrorf("the %s backend has no images and runtimes; leave --backend out, or use --backend %s", asked.Name(), prisons.Containers().Name())
	case asked != nil:
		return c.choosePlain(ctx, "requested")
	case c.Image != "", c.setup.WantsTools():
		err := prisons.Containers().Probe(ctx)
		if err == nil {
			return c.chooseContainer(ctx, c.wish()+" and an engine answers")
		}
		return c.withoutEngine(ctx, err)
	case c.ImageGiven: // a runtime only
		return errNoImage
	}
	err := c.choosePlain(ctx, "no image is requested and namespaces work here")
	if err == nil && c.Runtime != "" {
		c.session.Report.Say("runtime %s is not used: no image is requested, and native prisons share the kernel of this machine", gitops.Text(c.Runtime))
	}
	if _, ok := errors.AsType[*prison.Unavailable](err); ok && prisons.Containers().Probe(ctx) == nil {
		if c.setup.File != "" {
			return c.chooseContainer(ctx, fmt.Sprintf("%s, and an engine answers", err))
		}
		return environment.Advise(requestErrorf("%s; a container engine answers, but there is no image to use", err), imageHints...)
	}
	return err
}

// wish returns the reason why this request needs a container.
func (c *resolved) wish() string {
	if c.Image == "" {
		return c.setup.File + " asks for tools"
	}
	return "an image is requested"
}

// withoutEngine uses the backend without images for a request with an image on a machine without an engine, and prints a message.
// It refuses if the request has a runtime, too. The requested tools may be present on the machine.
func (c *resolved) withoutEngine(ctx context.Context, missing error) error {
	if c.Runtime != "" { // the runtime may have its own kernel, which no native prison has
		return missing
	}
	if err := c.choosePlain(ctx, fmt.Sprintf("%s, but %s", c.wish(), missing)); err != nil {
		return errors.Join(missing, err)
	}
	if c.Image != "" {
		c.session.Report.Say("image %s is not used: %s", gitops.Text(c.Image), missing)
	}
	return nil
}

var (
	imageHints = []string{"git airlock start --image IMAGE  # one with git and a shell", "git config airlock.image IMAGE"}
	errNoImage = environment.Advise(requestErrorf("the docker backend needs an image, or a %s to build one from", recipe.FileName), imageHints...)
)

func (c *resolved) choosePlain(ctx context.Context, reason string) error {
	b, r := prisons.Plain(), &c.airlock
	r.Backend, r.Reason, r.Image, r.Runtime = b.Name(), reason, "", ""
	if c.tried != nil {
		_, err := c.tried()
		return err
	}
	return b.Probe(ctx)
}

// chooseContainer uses the requested image, or the one that the setup describes.
func (c *resolved) chooseContainer(ctx context.Context, reason string) (err error) {
	r := &c.airlock
	r.Backend, r.Reason, r.Image, r.Runtime, r.Built = prisons.Containers().Name(), reason, c.Image, c.Runtime, false
	if c.Image == "" && c.setup.File == "" {
		return errNoImage
	}
	if err := prisons.Containers().Probe(ctx); err != nil {
		return err
	}
	if c.Image == "" {
		r.Built = true
		if err := c.session.Environment().Agree(ctx, c.setup, true); err != nil {
			return err
		}
		// Check for secrets first, so that the user does not wait for an image in vain.
		if err := c.secrets.Finish(c.session.Report); err != nil {
			return err
		}
		if r.Image, err = c.session.Environment().Image(ctx, c.setup); err != nil || c.session.Dry {
			return err
		}
	}
	return prisons.Containers().CheckImage(ctx, r.Image)
}

// keepBackend keeps the backend of an airlock that is started again, because the backend has the prison's writable files. It also
// keeps the reason that the record has for the backend.
func (c *resolved) keepBackend(ctx context.Context) error {
	r, own := &c.airlock, c.session.Prisons().Backend(c.airlock)
	if c.BackendGiven && c.Backend != "auto" && c.Backend != r.Backend {
		return &environment.Refusal{Text: fmt.Sprintf("this airlock has the backend %s", r.Backend), Next: []string{"git airlock start  # without --backend", "git airlock clear"}}
	}
	images := own.Traits("").Images
	if !images && c.ImageGiven {
		return &environment.Refusal{Text: "this airlock has no image", Next: []string{"git airlock start  # without --image, --runtime", "git airlock clear"}}
	}
	if !c.ImageGiven {
		c.Image, c.Runtime = "", r.Runtime
	}
	spec := c.session.Prisons().Spec(*r)
	anew := r.Built && c.Image == "" && c.setup.File != ""
	if !anew && !c.ImageGiven {
		return own.ProbeOf(ctx, spec)
	}
	if err := checkEngine(spec); err != nil {
		return err
	}
	if !anew {
		c.Image = cmp.Or(c.Image, r.Image)
	}
	return c.chooseContainer(ctx, r.Reason)
}

// checkEngine refuses a new image for a container if the container is on another engine than the one in use now. The image would be
// chosen on the new engine, but the container would look for it on the old one.
func checkEngine(spec prison.Spec) error {
	its, now, err := prisons.Containers().Host(spec.Dir)
	if err != nil || its == now {
		return err
	}
	return &environment.Refusal{
		Text: fmt.Sprintf("the container of this airlock is on the engine at %s, and the one in use now is at %s", its, now),
		Next: []string{"DOCKER_HOST=" + words.ShellQuote(its) + " git airlock start", "git airlock clear"}}
}

// Request describes the airlock that a caller wants. It is independent of the situation. [Session.Start] resolves it.
type Request struct {
	Backend      string // the name of a backend, or "auto"
	BackendGiven bool   // by an option, not by a setting

	Image, Runtime string
	ImageGiven     bool // Image or Runtime is from an option

	Isolation airlock.Isolation // network and limits
	Rules     airlock.Rules     // of the network, in addition to the settings
	Tools     []airlock.Tool
	Rootfs    string

	Env      []environment.Variable // from options
	EnvGiven bool                   // an option was given, possibly to drop all variables
	UsualEnv []string               // from the setting [EnvKey], as NAME or NAME=VALUE; ignored if the prison is running
	Dotenv   map[string]string      // the user's .env file

	Inside       bool              // the workspace is a folder of the work tree
	Recipe       bool              // use the repository's recipe
	AllowSecrets bool              // allow secrets in the snapshot
	Selftest     bool              // refuse a prison that does not keep its promises
	Overrides    map[string]string // settings of promotion, fixed until the airlock is cleared
	Command      []string          // the command to launch; nil for none
	Agent        *Agent            // the agent to launch, or with a task to run; nil for none

	// Anew begins a [Session.Run] again in a new process, after this one has read values of credentials for a start. May be nil.
	Anew func() error

	Given []string // the given options, for messages
	Typed []string // the same with their values, for hints
}
