package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func startCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "start", Usage: "take a snapshot of the branch, start the prison and the daemon",
		UsageText: "git airlock start [options] [-- COMMAND...]",
		Description: "Again on a running airlock: heals what has died. On a stopped one: resumes the same workspace. Network and limits are\n" +
			"then what options and settings say now. The backend stays, and what --engine, --no-auto-land, --no-recipe and \"git -c\" said;\n" +
			"image and runtime stay unless an option names others, variables, tools and rootfs unless an option or a setting does.\n" +
			"An image that was built of the recipe follows the recipe.\n\n" +
			"What the committed " + recipe.FileName + " asks for is made, asked for on this machine, or refused; its startup\n" +
			"commands are run once, and again when they have changed.\n" +
			"With a command, runs it detached in the prison, with a terminal of its own, one at a time.",
		Flags: startFlags(),
		Action: inRepository(func(c *cli.Context, a *app) error {
			request, err := a.request(c, inside)
			if err != nil {
				return err
			}
			_, _, err = a.start(c.Context, request)
			return err
		}),
	}, inside, true)
}

// start makes sure that an airlock runs here, runs what its setup wants run, and launches the command asked for.
// started tells whether the prison did not run before.
func (a *app) start(ctx context.Context, request startRequest) (r airlock.Record, started bool, err error) {
	if r, started, err = a.bringUp(ctx, &request); err != nil {
		return r, started, err
	}
	if err := a.awaken(ctx, r, request.choice.setup, started); err != nil {
		if len(request.command) > 0 {
			ui.Say(a.message, "not launched: %s", gitops.Escape(fmt.Sprintf("%q", request.command)))
		}
		return r, started, err
	}
	return r, started, a.launch(ctx, r, request.command)
}

// bringUp makes sure that prison and daemon run.
func (a *app) bringUp(ctx context.Context, request *startRequest) (r airlock.Record, started bool, err error) {
	here, err := a.living()
	if err != nil {
		return r, false, err
	}
	if request.choice, err = a.settle(ctx, here, *request); err != nil {
		return r, false, err
	}
	unlock, err := a.lock(ctx)
	if err != nil {
		return r, false, err
	}
	defer unlock()
	if here, err = a.swept(ctx); err != nil {
		return r, false, err
	}
	if id := request.choice.airlock.ID; here == nil && id != "" || here != nil && id != here.ID {
		// Another command was here meanwhile.
		if request.choice, err = a.settle(ctx, here, *request); err != nil {
			return r, false, err
		}
	}
	if here == nil {
		r, err = a.begin(ctx, *request)
		started = true
	} else {
		started, err = a.resume(ctx, here, *request)
		r = *here
	}
	if err == nil && !a.dry && (started || !request.forRun) {
		err = a.store.StopAfterUse(r.ID, request.forRun)
	}
	return r, started, err
}

// living is the airlock of this worktree, nil if there is none or what is left of one is to be removed.
func (a *app) living() (*airlock.Record, error) {
	r, err := a.store.Here()
	if r != nil && (r.Phase == airlock.Starting || r.Phase == airlock.Clearing) {
		return nil, err
	}
	return r, err
}

// swept is the same once nobody else is at work: what is left of an airlock is removed.
func (a *app) swept(ctx context.Context) (*airlock.Record, error) {
	r, err := a.store.Here()
	if err == nil && r != nil && (r.Phase == airlock.Starting || r.Phase == airlock.Clearing) {
		// Nobody is at it, since the lock was free: it was interrupted.
		return nil, a.erase(ctx, *r)
	}
	return r, err
}

// lock keeps other starts, stops and clears in this repository out, and sweeps up after those that were killed.
func (a *app) lock(ctx context.Context) (func(), error) {
	if a.dry {
		return func() {}, nil
	}
	unlock, err := a.store.Lock(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.store.Sweep(); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// begin makes a new airlock, or nothing.
func (a *app) begin(ctx context.Context, request startRequest) (airlock.Record, error) {
	outside := beside(func() (int, error) { return a.repo.Changes(ctx) })
	base, err := a.base(ctx)
	if err != nil {
		return airlock.Record{}, err
	}
	env, err := request.environment(nil)
	if err != nil {
		return airlock.Record{}, err
	}
	chosen := request.choice.airlock
	r := airlock.Record{
		Backend: chosen.Backend, Reason: chosen.Reason, Image: chosen.Image, Runtime: chosen.Runtime, Built: chosen.Built, Setup: chosen.Setup,
		Branch: base.Branch, Base: base.Commit, Worktree: a.repo.WorktreeID(), Top: a.repo.Top, Home: a.repo.Identity(),
		Inside: request.inside, Format: a.repo.Format, Isolation: request.isolation, Env: env,
		Tools: request.tools, Rootfs: request.rootfs, Settings: request.overrides, Ghost: identity.NewGhost(),
	}
	if err := a.stale(ctx, request, base); err != nil {
		return r, err
	}
	out, err := a.excluded(ctx)
	if err != nil {
		return r, err
	}
	secrets := request.choice.secrets
	if base.Tree != request.choice.base.Tree { // committed to meanwhile
		secrets = a.screen(ctx, base, request.choice.loose, request.secrets)
	}
	if a.dry {
		changes, err := outside()
		if err := errors.Join(err, secrets.verdict(a.message)); err != nil {
			return r, err
		}
		ui.Say(a.message, "would snapshot %s at %.12s and start a %s prison (%s); %s",
			gitops.Escape(r.BranchName()), r.Base, r.Backend, r.Reason, stayOutside(changes))
		return r, nil
	}
	if r, err = a.store.Create(ctx, r); err == nil {
		err = a.build(ctx, &r, beginning{base, out, request.choice.loose, secrets, request.choice.setup, outside})
	}
	if err == nil && request.selftest {
		err = a.prove(ctx, r)
	}
	if err != nil {
		if r.ID != "" {
			err = errors.Join(err, a.erase(context.WithoutCancel(ctx), r))
		}
		return r, err
	}
	changes, err := outside()
	if err == nil {
		a.announce(r, len(request.choice.loose), changes)
	}
	return r, err
}

// announce says what there is now, and what in it may be other than expected.
func (a *app) announce(r airlock.Record, loose, changes int) {
	ui.Say(a.message, "%s: snapshot of %s at %.12s in %s, %s prison, network %s",
		r.ID, gitops.Escape(r.BranchName()), r.Base, r.Workspace, r.Backend, r.Isolation.Network)
	if loose > 0 {
		ui.Say(a.message, "%s that git does not track went in (%s), and come out only if they are committed", ui.Count(loose, "file"), includeName)
	}
	if changes > 0 {
		ui.Say(a.message, "%s", stayOutside(changes))
	}
	for _, weaker := range r.Isolation.Weaker {
		ui.Say(a.message, "weaker here: %s", weaker.Text)
	}
}

func stayOutside(changes int) string {
	if changes == 1 {
		return "1 uncommitted change of yours stays outside"
	}
	return ui.Count(changes, "uncommitted change") + " of yours stay outside"
}

// base is what is checked out, if a snapshot can be taken of it.
func (a *app) base(ctx context.Context) (gitops.Head, error) {
	head, err := a.repo.Head(ctx)
	switch {
	case err != nil:
		return head, err
	case head.Branch == "":
		return head, gitops.ErrDetached
	case head.Commit == "":
		if n, err := a.repo.Changes(ctx); err == nil && n > 0 {
			return head, &hinted{gitops.ErrUnborn, []string{"git add . && git commit -m 'Initial commit'"}}
		}
		return head, gitops.ErrUnborn
	}
	if target, err := a.repo.SymbolicRef(ctx, head.Branch); err != nil || target != "" {
		return head, errors.Join(err, &hinted{fmt.Errorf("%s is another name of %s, which commits would not land on", gitops.Escape(head.Branch), gitops.Escape(target)),
			[]string{"git symbolic-ref HEAD " + gitops.Pasteable(target)}})
	}
	return head, nil
}

// launch runs the agent's command detached.
func (a *app) launch(ctx context.Context, r airlock.Record, command []string) error {
	if len(command) == 0 || a.dry {
		return nil
	}
	unlock, err := a.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	spec, err := a.spec(r)
	if err != nil {
		return err
	}
	running, err := a.backend(r).Launched(ctx, spec)
	if err != nil {
		return err
	}
	if running != nil && !running.Exited {
		return &refusal{fmt.Sprintf("the prison is running %q already", running.Argv), []string{"git airlock status", "git airlock stop"}}
	}
	box, err := a.attach(ctx, r)
	if err != nil {
		return err
	}
	defer box.Close()
	if err := box.Launch(ctx, prison.Process{Argv: command, Terminal: terminalLikeOurs()}); err != nil {
		return err
	}
	ui.Say(a.message, "launched %s", gitops.Escape(fmt.Sprintf("%q", command)))
	return nil
}
