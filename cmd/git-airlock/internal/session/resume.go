package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/inbound"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/snapshot"
	"github.com/git-airlock/git-airlock/words"
)

// resume starts a stopped or broken airlock again.
func (c resolved) resume(ctx context.Context, r airlock.Record) (airlock.Record, error) {
	s := c.session
	word := "is already running"
	if c.runs {
		if err := s.startedWithout(r, c.Agent, c.Typed); err != nil {
			return r, err
		}
	} else {
		word = "runs again"
		if n := c.Isolation.Network; n != prison.NetworkNone.String() {
			word += ", network " + n
		}
	}
	if s.Dry {
		s.Report.Say("%s on %s: would make sure that it runs", r.ID, r.BranchName())
		c.sayIgnored(r)
		return r, nil
	}
	if !c.runs {
		r = c.onto(r)
		if err := c.restart(ctx, &r); err != nil {
			return r, err
		}
	}
	if r.Phase != airlock.Running { // a start was killed before it wrote the record
		r.Phase = airlock.Running
		if err := s.Store.Save(r); err != nil {
			return r, err
		}
	}
	s.sendToAgent(ctx, r)
	if err := s.renewDaemon(ctx, r); err != nil {
		return r, err
	}
	switch shown, err := s.Store.Exclude(r); {
	case err != nil:
		return r, err
	case shown:
		s.Report.Say("the workspace %s was missing from info/exclude; it is added again", r.Workspace)
	}
	s.Report.Say("%s on %s %s", r.ID, r.BranchName(), word)
	if c.runs {
		s.supplyKeys(ctx, r)
	}
	c.sayIgnored(r)
	return r, nil
}

// sayIgnored reports what a running prison ignores: options, and a setup that has changed.
func (c resolved) sayIgnored(r airlock.Record) {
	if !c.runs {
		return
	}
	c.tooLate(c.session.Report, r)
	if c.setup.File != "" && (r.Setup == nil || r.Setup.Digest != c.setup.Digest) {
		c.session.Report.Say("%s has changed; the running prison was made from its earlier version", c.setup.File)
		c.session.Report.Hint("git airlock stop && git airlock start")
	}
}

// sendTime bounds sending to the agent while the user waits for a start or stop.
const sendTime = 5 * time.Second

// sendToAgent finishes an interrupted sync, and sends the agent new reasons of verdicts. The caller holds the store's lock. After an error the
// daemon tries again.
func (s *Session) sendToAgent(ctx context.Context, r airlock.Record) {
	if err := inbound.SendToAgent(ctx, s.Prisons(), r, true, sendTime); err != nil && ctx.Err() == nil {
		s.Report.Say("not brought to the agent yet: %s", err)
	}
}

// restart starts the prison of a workspace again.
func (c resolved) restart(ctx context.Context, r *airlock.Record) error {
	s := c.session
	if s.Store.Restoring(r.ID) {
		return airlock.ErrRestoring
	}
	spec, err := s.Prisons().StartSpec(*r, c.environ(), c.setup.Env.Set, c.watched)
	if err != nil {
		return err
	}
	b := s.Prisons().Backend(*r)
	if err := b.Stop(ctx, spec); err != nil { // it ends the remains of a crash
		return err
	}
	restore, err := s.Prisons().FollowImage(ctx, spec, r.Built || slices.Contains(c.Given, "--image"))
	if err == nil {
		spec, err = c.withNetwork(spec)
	}
	if err != nil {
		return errors.Join(err, restore())
	}
	if s.Store.WorkspaceGone(*r) {
		err = c.rebuild(ctx, r, spec)
	} else {
		var isolation prison.Isolation
		isolation, err = b.Start(ctx, spec)
		s.Prisons().SetIsolation(r, isolation)
	}
	if err == nil {
		err = s.Prisons().CheckInside(ctx, *r, c.setup)
	}
	if err == nil && c.Selftest {
		err = s.Prisons().Prove(ctx, *r)
	}
	if err == nil {
		err = s.Prisons().Trust(ctx, *r, s.Now())
	}
	if err != nil {
		stopped := b.Stop(context.WithoutCancel(ctx), spec)
		if stopped == nil { // otherwise a prison of the new image may be there
			stopped = restore()
		}
		return errors.Join(err, stopped)
	}
	r.Phase = airlock.Running
	return s.Store.Save(*r)
}

// renewDaemon makes sure that a daemon is running. It replaces a daemon whose promotion fails: the cause may be the daemon's
// environment, which it has from the command that started it.
func (s *Session) renewDaemon(ctx context.Context, r airlock.Record) error {
	last, err := ledger.ReadOutcome(s.Store.Dir(r.ID))
	if err == nil && last.Failure != "" {
		err = daemon.Stop(ctx, s.Store, r.ID)
	}
	if errors.Is(err, daemon.ErrElsewhere) {
		err = nil // this process cannot replace a daemon that it cannot see
	}
	if err != nil {
		return err
	}
	return s.startDaemon(r)
}

// tooLate reports the options that a running prison ignores.
func (q Request) tooLate(report Reporter, r airlock.Record) {
	if len(q.Given) == 0 {
		return
	}
	report.Say("the prison keeps running with its earlier options; ignored: %s", strings.Join(q.Given, ", "))
	end := "stop"
	other := q.BackendGiven && q.Backend != "auto" && q.Backend != r.Backend
	b := prisons.Named(r.Backend)
	if other || q.ImageGiven && b != nil && !b.Traits("").Images { // only clear ends an airlock's backend
		end = "clear"
	}
	report.Hint("git airlock " + end + " && git airlock start " + strings.Join(q.Typed, " "))
}

// rebuild makes a removed workspace again, from the inner main at its last export, and starts its prison, which is stopped.
func (c resolved) rebuild(ctx context.Context, r *airlock.Record, spec prison.Spec) error {
	s := c.session
	// A running daemon has noticed that the workspace is missing, and would not notice the new one.
	if err := daemon.Stop(ctx, s.Store, r.ID); err != nil {
		return err
	}
	last, err := ledger.ReadOutcome(s.Store.Dir(r.ID))
	if err != nil {
		return err
	}
	snap, err := snapshot.Restore(ctx, quarantine.Open(s.Prisons().Quarantine(*r), r.Format), cmp.Or(last.Inner, r.Root), r.Ghost)
	if err != nil {
		return fmt.Errorf("rebuild the workspace: %w", err)
	}
	b := s.Prisons().Backend(*r)
	var isolation prison.Isolation
	if err = b.Prepare(ctx, spec); err == nil {
		isolation, err = b.Start(ctx, spec)
	}
	if err == nil {
		s.Prisons().SetIsolation(r, isolation)
		r.Top = s.Repo.Top
		err = prisons.Making{Backend: b, Spec: spec, Report: s.Report}.Fill(ctx, snap, nil)
	}
	if err != nil {
		// An incomplete workspace would look like the agent's work.
		after := context.WithoutCancel(ctx)
		return errors.Join(fmt.Errorf("rebuild the workspace: %w", err), b.Stop(after, spec), b.Wipe(after, spec))
	}
	s.Report.Say("the workspace was gone; it is rebuilt from the agent's commits on main")
	return c.includeAgain(ctx, *r)
}

// includeAgain copies the untracked files of .worktreeinclude into a rebuilt workspace, with their present content. It keeps files
// that the agent has committed at these paths.
func (c resolved) includeAgain(ctx context.Context, r airlock.Record) error {
	s := c.session
	loose, err := s.Environment().Include(ctx)
	if err != nil || len(loose) == 0 {
		return err
	}
	box, err := s.Prisons().Attach(ctx, r)
	if err != nil {
		return err
	}
	all, err := prisons.WorkspaceIn(box).PlaceBeside(ctx, loose)
	if err := errors.Join(err, box.Close()); err != nil {
		return err
	}
	but := ""
	if !all {
		but = ", except where the agent has a file of the same name"
	}
	s.Report.Say("copied %s into the workspace again (%s)%s", words.Count(len(loose), "untracked file"), environment.IncludeName, but)
	return nil
}
