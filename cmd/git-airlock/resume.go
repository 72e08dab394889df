package main

import (
	"context"
	"errors"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// resume makes a stopped or broken airlock run again, and tells whether its prison had to be started.
func (a *app) resume(ctx context.Context, r *airlock.Record, request startRequest) (started bool, err error) {
	runs, err := a.prisonRuns(ctx, *r)
	if err != nil {
		return false, err
	}
	word := "already runs"
	if !runs {
		word = "runs again"
	}
	if a.dry {
		ui.Say(a.message, "%s on %s: would make sure that it runs", r.ID, gitops.Escape(r.BranchName()))
		return false, nil
	}
	if !runs && request.choice.glance { // it ran a moment ago
		if request.choice, err = a.settle(ctx, r, request); err != nil {
			return false, err
		}
	}
	if !runs {
		if err := a.restart(ctx, r, request); err != nil {
			return false, err
		}
	}
	if r.Phase != airlock.Running { // a start was killed before it was written down
		r.Phase = airlock.Running
		if err := a.store.Save(*r); err != nil {
			return false, err
		}
	}
	if err := a.startAnew(ctx, *r); err != nil {
		return false, err
	}
	switch shown, err := a.store.Exclude(*r); {
	case err != nil:
		return false, err
	case shown:
		ui.Say(a.message, "the workspace %s was not in info/exclude any more; it is again", r.Workspace)
	}
	ui.Say(a.message, "%s on %s %s", r.ID, gitops.Escape(r.BranchName()), word)
	if runs {
		a.late(*r, request)
	}
	if runs && differs(r.Setup, request.choice.airlock.Setup) {
		ui.Say(a.message, "%s has changed; the prison is as it was", request.choice.setup.file)
		ui.Hint(a.message, "git airlock stop && git airlock start")
	}
	return !runs, nil
}

// startAnew makes sure that a daemon runs. One whose work fails makes place for another: what it lacks may be in its environment, which
// is that of the command that started it.
func (a *app) startAnew(ctx context.Context, r airlock.Record) error {
	failing, err := ledger.Failing(a.store.Dir(r.ID))
	if err == nil && failing {
		err = daemon.Stop(ctx, a.store, r.ID)
	}
	if errors.Is(err, daemon.ErrElsewhere) {
		err = nil // it does there what there is to do
	}
	if err != nil {
		return err
	}
	return a.startDaemon(r)
}

// late says that options come too late for a prison that runs.
func (a *app) late(r airlock.Record, request startRequest) {
	if len(request.given) == 0 {
		return
	}
	ui.Say(a.message, "the prison is as it was started; not obeyed: %s", strings.Join(request.given, ", "))
	end := "stop"
	if request.backendOption && request.backend != "auto" && request.backend != r.Backend { // which stays as long as the airlock
		end = "clear"
	}
	ui.Hint(a.message, "git airlock "+end+" && git airlock start "+strings.Join(request.typed, " "))
}

// restart starts the prison of a workspace again, as the options are now.
func (a *app) restart(ctx context.Context, r *airlock.Record, request startRequest) error {
	r.Isolation.Network, r.Isolation.Limits = request.isolation.Network, request.isolation.Limits
	chosen := request.choice.airlock
	r.Image, r.Runtime, r.Built, r.Setup = chosen.Image, chosen.Runtime, chosen.Built, chosen.Setup
	for key, value := range request.overrides {
		if r.Settings == nil {
			r.Settings = map[string]string{}
		}
		r.Settings[key] = value
	}
	env, err := request.environment(r.Env)
	if err != nil {
		return err
	}
	r.Env = env
	if len(request.tools) > 0 {
		r.Tools = request.tools
	}
	if request.rootfs != "" {
		r.Rootfs = request.rootfs
	}
	spec, err := a.spec(*r)
	if err != nil {
		return err
	}
	b := a.backend(*r)
	if err := b.Stop(ctx, spec); err != nil { // what a crash left
		return err
	}
	if a.store.WorkspaceGone(*r) {
		err = a.rebuild(ctx, r)
	} else {
		var isolation prison.Isolation
		isolation, err = b.Start(ctx, spec)
		isolated(r, isolation)
	}
	if err == nil {
		err = a.checkInside(ctx, *r, request.choice.setup)
	}
	if err != nil {
		return errors.Join(err, b.Stop(context.WithoutCancel(ctx), spec))
	}
	if request.selftest {
		if err := a.prove(ctx, *r); err != nil {
			return errors.Join(err, b.Stop(context.WithoutCancel(ctx), spec))
		}
	}
	r.Phase = airlock.Running
	return a.store.Save(*r)
}
