package session

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/inbound"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/snapshot"
	"github.com/git-airlock/git-airlock/words"
)

// Start makes sure that an airlock is running here, runs the startup commands of its setup, and launches the command of the
// request.
func (s *Session) Start(ctx context.Context, q Request) error {
	_, _, err := s.start(ctx, q, false)
	return err
}

// start implements Start. With forRun, the last run in the airlock stops it. started reports whether start has started the prison.
func (s *Session) start(ctx context.Context, q Request, forRun bool) (r airlock.Record, started bool, err error) {
	r, setup, started, err := s.ensureRunning(ctx, q, forRun)
	if err != nil {
		return r, started, err
	}
	if err := s.runStartup(ctx, r, setup, started); err != nil {
		if q.launchesSome() {
			s.Report.Say("not launched: %s", q.launches())
		}
		return r, started, err
	}
	return r, started, s.launch(ctx, r, q, started)
}

// ensureRunning makes sure that prison and daemon are running. It resolves a request before it takes the lock. If the situation has
// changed when it holds the lock, it resolves the request again.
func (s *Session) ensureRunning(ctx context.Context, q Request, forRun bool) (r airlock.Record, setup environment.Setup, started bool, err error) {
	q.Overrides = gitops.Config{}.With(q.Overrides).With(identity.Given(s.Settings))
	for tries := 3; ; tries-- {
		here, err := s.binding().Living()
		if err != nil {
			return r, setup, false, err
		}
		seen, err := s.situation(ctx, here)
		if err != nil {
			return r, setup, false, err
		}
		c, err := s.resolve(ctx, here, seen, q)
		if err != nil {
			return r, setup, false, err
		}
		unlock, err := s.lock(ctx)
		if err != nil {
			return r, setup, false, err
		}
		r, started, again, err := s.startLocked(ctx, c, forRun)
		unlock()
		if !again || err != nil {
			return r, c.setup, started, err
		}
		if tries == 0 {
			return r, setup, false, &environment.Refusal{Text: "another command changed the branch or its airlock meanwhile", Next: []string{"git airlock start"}}
		}
	}
}

// startLocked starts or resumes the airlock of a resolved request. again reports that the situation has changed, and that nothing
// was done. The caller holds the lock.
func (s *Session) startLocked(ctx context.Context, c resolved, forRun bool) (r airlock.Record, started, again bool, err error) {
	here, err := s.binding().Swept(ctx)
	if err != nil {
		return r, false, false, err
	}
	if now, err := s.situation(ctx, here); err != nil || now != c.situation {
		return r, false, true, err
	}
	if here == nil {
		started = true
		r, err = c.create(ctx)
	} else {
		started = !c.runs
		r, err = c.resume(ctx, *here)
	}
	if err == nil && !s.Dry && (started || !forRun) {
		err = s.Store.StopAfterUse(r.ID, forRun)
	}
	if err == nil && !s.Dry && started {
		events.Started(s.Store.Dir(r.ID), r.Session)
	}
	return r, started, false, err
}

// create makes a new airlock. If it fails, it leaves nothing behind.
func (c resolved) create(ctx context.Context) (airlock.Record, error) {
	s := c.session
	changes := inBackground(func() (int, error) { return s.Repo.Changes(ctx) })
	exclude, err := inbound.Excluded(ctx, s.Repo, s.Config, nil)
	if err != nil {
		return airlock.Record{}, err
	}
	r := c.onto(airlock.Record{
		Branch: c.base.Branch, Base: c.base.Commit, Worktree: s.Repo.WorktreeID(), Top: s.Repo.Top, RepoID: s.Repo.Identity(),
		Inside: c.Inside, Format: s.Repo.Format, Ghost: identity.NewGhost(),
	})
	if s.Dry {
		n, err := changes()
		if err := errors.Join(err, c.secrets.Finish(s.Report)); err != nil {
			return r, err
		}
		s.Report.Say("would snapshot %s at %.12s and start a %s prison (%s); %s",
			r.BranchName(), r.Base, r.Backend, r.Reason, stayOutside(n))
		return r, nil
	}
	if r, err = s.Store.Create(ctx, r); err == nil {
		s.keepHint(ctx, r.ID)
		err = c.build(ctx, &r, exclude, changes)
	}
	if err == nil && c.Selftest {
		err = s.Prisons().Prove(ctx, r)
	}
	if err != nil {
		if r.ID != "" {
			err = errors.Join(err, s.Prisons().Erase(context.WithoutCancel(ctx), r))
		}
		return r, err
	}
	n, err := changes()
	if err == nil {
		announce(s.Report, r, len(c.include), n)
		s.TellRemains(ctx)
	}
	return r, err
}

// build makes all parts of an airlock: it takes the snapshot while the prison starts, fills the workspace, and starts the daemon.
// When it returns, none of its goroutines is running. changes counts the user's uncommitted changes.
func (c resolved) build(ctx context.Context, r *airlock.Record, exclude ignore.Patterns, changes func() (int, error)) (err error) {
	taken := c.takeSnapshot(ctx, *r, exclude)
	defer taken() //nolint:errcheck // the call below returns the error
	box, err := c.preparePrison(r)
	if err != nil {
		return err
	}
	// Count before the workspace exists, because git ignores the workspace only from now on.
	if _, err := changes(); err != nil {
		return err
	}
	started, err := box.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { // the network gets ready during all of this; if it fails, the prison ends, and this error is the cause of others
		if _, startErr := started.Result(); startErr != nil {
			err = startErr
		}
	}()
	snap, err := taken()
	if err == nil {
		err = c.secrets.Finish(c.session.Report)
	}
	if err == nil {
		err = c.fillWorkspace(ctx, r, box, snap, started)
	}
	if err != nil {
		return err
	}
	r.Phase = airlock.Running
	if err := c.session.Store.Save(*r); err != nil {
		return err
	}
	return gitops.Together(
		func() error { return c.session.startDaemon(*r) },
		func() error { return c.session.Prisons().Trust(ctx, *r, c.session.Now()) })
}

// preparePrison makes the folder and the network of an airlock's prison. The prison is not started.
func (c resolved) preparePrison(r *airlock.Record) (box prisons.Making, err error) {
	s := c.session
	r.Session = identity.SessionID(s.Now(), r.ID)
	spec, err := s.Prisons().StartSpec(*r, c.environ(), c.setup.Env.Set, c.watched)
	if err != nil {
		return box, err
	}
	if err := os.Mkdir(spec.Dir, 0o700); err != nil {
		return box, err
	}
	spec, err = c.withNetwork(spec)
	return prisons.Making{Backend: s.Prisons().Backend(*r), Spec: spec, Report: s.Report}, err
}

// takeSnapshot takes the snapshot in the background, and then begins to search it for secrets. taken waits for the snapshot.
func (c resolved) takeSnapshot(ctx context.Context, r airlock.Record, exclude ignore.Patterns) (taken func() (*snapshot.Snapshot, error)) {
	s := c.session
	_, endProgress := s.Report.Begin("taking the snapshot")
	result := inBackground(func() (*snapshot.Snapshot, error) {
		dir := s.Prisons().Quarantine(r)
		snap, err := snapshot.Take(ctx, s.Repo, dir, c.base, exclude, r.Ghost)
		if err == nil {
			c.secrets.Begin(quarantine.Open(dir, r.Format))
		}
		return snap, environment.AdvisePartial(s.Config, err)
	})
	return func() (*snapshot.Snapshot, error) {
		defer endProgress()
		return result()
	}
}

// fillWorkspace puts a snapshot into the workspace. If possible, it does so before the prison runs. Otherwise it does so from inside,
// while the network of the prison gets ready.
func (c resolved) fillWorkspace(ctx context.Context, r *airlock.Record, box prisons.Making, snap *snapshot.Snapshot, started prisons.Starting) (err error) {
	s := c.session
	filled := box.FillBeforehand(ctx, snap, c.include)
	isolation, err := started.Runs()
	if err != nil {
		return err
	}
	if err := s.Prisons().CheckInside(ctx, *r, c.setup); err != nil {
		return err
	}
	var steps []func() error
	if !filled {
		steps = append(steps, func() error { return box.Fill(ctx, snap, c.include) })
	}
	refs := []gitops.RefUpdate{{Ref: r.Ref("base"), New: r.Base}, {Ref: r.Ref("promoted"), New: r.Base}}
	err = gitops.Together(append(steps,
		func() error { return s.Repo.UpdateRefs(ctx, "airlock: start", refs...) },
		func() error { return box.Introduce(ctx, r.Ghost) })...)
	s.Prisons().SetIsolation(r, isolation)
	r.Root, r.Partial = snap.Root, snap.Partial
	return err
}

// inBackground runs a function in the background. The returned function waits for its result.
func inBackground[T any](do func() (T, error)) func() (T, error) {
	result := sync.OnceValues(do)
	go result() //nolint:errcheck // a later call returns the same error
	return result
}

// announce prints a summary of a new airlock, and anything that the user may not expect.
func announce(report Reporter, r airlock.Record, included, changes int) {
	report.Say("%s: snapshot of %s at %.12s in %s, %s prison, network %s",
		r.ID, r.BranchName(), r.Base, r.Workspace, r.Backend, r.Isolation.Network)
	if included > 0 {
		report.Say("copied %s into the workspace (%s); such files land only if the agent commits them", words.Count(included, "untracked file"), environment.IncludeName)
	}
	if changes > 0 {
		report.Say("%s", stayOutside(changes))
	}
	for _, weaker := range r.Isolation.Weaker {
		report.Say("weaker here: %s", weaker.Text)
	}
}

func stayOutside(changes int) string {
	if changes == 1 {
		return "1 uncommitted change is not in the snapshot"
	}
	return words.Count(changes, "uncommitted change") + " are not in the snapshot"
}
