package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/snapshot"
)

// Start makes sure that an airlock runs here, runs what its setup wants run, and launches the command of the request.
func (s *Session) Start(ctx context.Context, q Request) error {
	_, _, err := s.start(ctx, q, false)
	return err
}

// start is Start. forRun says that what is started is stopped by the last run in it; started reports whether the prison did
// not run before.
func (s *Session) start(ctx context.Context, q Request, forRun bool) (r airlock.Record, started bool, err error) {
	r, setup, started, err := s.bringUp(ctx, q, forRun)
	if err != nil {
		return r, started, err
	}
	if err := s.runStartup(ctx, r, setup, started); err != nil {
		if len(q.Command) > 0 {
			s.Report.Say("not launched: %s", gitops.Escape(fmt.Sprintf("%q", q.Command)))
		}
		return r, started, err
	}
	return r, started, s.launch(ctx, r, q.Command)
}

// bringUp makes sure that prison and daemon run. A request is resolved before other commands are locked out; if the situation
// is another one by the time they are, it is resolved anew.
func (s *Session) bringUp(ctx context.Context, q Request, forRun bool) (r airlock.Record, setup environment.Setup, started bool, err error) {
	for tries := 3; ; tries-- {
		here, err := s.living()
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
		r, started, again, err := s.carryOut(ctx, c, forRun)
		unlock()
		if !again || err != nil {
			return r, c.setup, started, err
		}
		if tries == 0 {
			return r, setup, false, &environment.Refusal{Text: "the branch was changed while its environment was made", Next: []string{"git airlock start"}}
		}
	}
}

// carryOut does what was resolved, unless the situation is another one by now. The caller holds the lock.
func (s *Session) carryOut(ctx context.Context, c resolved, forRun bool) (r airlock.Record, started, again bool, err error) {
	here, err := s.swept(ctx)
	if err != nil {
		return r, false, false, err
	}
	if now, err := s.situation(ctx, here); err != nil || now != c.situation {
		return r, false, true, err
	}
	if here == nil {
		started = true
		r, err = s.begin(ctx, c)
	} else {
		started = !c.runs && !s.Dry
		r, err = s.resume(ctx, *here, c)
	}
	if err == nil && !s.Dry && (started || !forRun) {
		err = s.Store.StopAfterUse(r.ID, forRun)
	}
	return r, started, false, err
}

// living returns the airlock of this worktree, nil if there is none, or only the rest of one.
func (s *Session) living() (*airlock.Record, error) {
	r, err := s.Store.Here()
	if r != nil && (r.Phase == airlock.Starting || r.Phase == airlock.Clearing) {
		return nil, err
	}
	return r, err
}

// swept is living once nobody else is at work: the rest of an airlock is removed.
func (s *Session) swept(ctx context.Context) (*airlock.Record, error) {
	r, err := s.Store.Here()
	if err == nil && r != nil && (r.Phase == airlock.Starting || r.Phase == airlock.Clearing) {
		// Nobody is at it, since the lock was free: it was interrupted.
		return nil, s.erase(ctx, *r)
	}
	return r, err
}

// begin makes a new airlock, or nothing.
func (s *Session) begin(ctx context.Context, c resolved) (airlock.Record, error) {
	changes := beside(func() (int, error) { return s.Repo.Changes(ctx) })
	exclude, err := s.excluded(ctx)
	if err != nil {
		return airlock.Record{}, err
	}
	r := c.onto(airlock.Record{
		Branch: c.base.Branch, Base: c.base.Commit, Worktree: s.Repo.WorktreeID(), Top: s.Repo.Top, Home: s.Repo.Identity(),
		Inside: c.Inside, Format: s.Repo.Format, Ghost: identity.NewGhost(),
	})
	if s.Dry {
		n, err := changes()
		if err := errors.Join(err, c.secrets.verdict(s.Report)); err != nil {
			return r, err
		}
		s.Report.Say("would snapshot %s at %.12s and start a %s prison (%s); %s",
			gitops.Escape(r.BranchName()), r.Base, r.Backend, r.Reason, stayOutside(n))
		return r, nil
	}
	if r, err = s.Store.Create(ctx, r); err == nil {
		err = s.build(ctx, &r, c, exclude, changes)
	}
	if err == nil && c.Selftest {
		err = s.prove(ctx, r)
	}
	if err != nil {
		if r.ID != "" {
			err = errors.Join(err, s.erase(context.WithoutCancel(ctx), r))
		}
		return r, err
	}
	n, err := changes()
	if err == nil {
		s.announce(r, len(c.include), n)
	}
	return r, err
}

// build makes all there is to an airlock: it takes the snapshot while the prison starts, fills the workspace, and starts the
// daemon. When it returns, nothing of it goes on. changes counts the user's uncommitted changes.
func (s *Session) build(ctx context.Context, r *airlock.Record, c resolved, exclude gitops.Patterns, changes func() (int, error)) error {
	r.Session = identity.SessionID(s.Now(), r.ID)
	spec, err := s.prisons().spec(*r)
	if err != nil {
		return err
	}
	box := newBox{backend: s.prisons().backend(*r), spec: spec, report: s.Report}
	if err := os.Mkdir(spec.Dir, 0o700); err != nil {
		return err
	}
	_, taken := s.Report.Begin("taking the snapshot")
	defer taken()
	take := beside(func() (*snapshot.Snapshot, error) {
		quarantine := s.prisons().quarantine(*r)
		snap, err := snapshot.Take(ctx, s.Repo, quarantine, c.base, exclude, r.Ghost)
		if err == nil {
			c.secrets.begin(gitops.OpenQuarantine(quarantine, r.Format))
		}
		return snap, err
	})
	defer take() //nolint:errcheck // or it was asked for
	// Before there is a workspace, which git is told to ignore just now.
	if _, err := changes(); err != nil {
		return err
	}
	start, wait, err := box.start(ctx)
	if err != nil {
		return err
	}
	defer wait()
	snap, err := take()
	taken()
	if err == nil {
		err = c.secrets.verdict(s.Report)
	}
	if err != nil {
		return err
	}
	filled := box.fillBeforehand(ctx, snap, c.include)
	isolation, err := start()
	if err != nil {
		return err
	}
	setIsolation(r, isolation)
	r.Root, r.Part = snap.Root, snap.Part
	if err := s.checkInside(ctx, *r, c.setup); err != nil {
		return err
	}
	mark := beside(func() (any, error) { return nil, s.markBase(ctx, *r) })
	if !filled {
		err = box.fill(ctx, snap, c.include)
	}
	if _, markErr := mark(); err != nil || markErr != nil {
		return errors.Join(err, markErr)
	}
	r.Phase = airlock.Running
	if err := s.Store.Save(*r); err != nil {
		return err
	}
	return s.startDaemon(*r)
}

// beside does something while other things are done. Calling what it returns waits for the result.
func beside[T any](do func() (T, error)) func() (T, error) {
	result := sync.OnceValues(do)
	go result() //nolint:errcheck // asked for again by who waits
	return result
}

// newBox is a prison that is being made.
type newBox struct {
	backend prison.Backend
	spec    prison.Spec
	report  Reporter
}

// overlaid reports whether the workspace of the prison is seen through an overlay.
func (b newBox) overlaid() bool { return b.backend.Traits(b.spec.Runtime).Overlay }

// misled reports whether the variables of the prison could mislead what we run in it (PATH, GIT_DIR): its workspace is filled
// before it starts, since under the overlay of a prison that runs nobody else may change the workspace.
func (b newBox) misled() bool { return b.overlaid() && len(b.spec.Env) > 0 }

// start makes the workspace's folder and begins to start the prison. result waits for the prison; after wait nothing of it
// goes on any more.
func (b newBox) start(ctx context.Context) (result func() (prison.Isolation, error), wait func(), err error) {
	if err := b.backend.Prepare(ctx, b.spec); err != nil {
		return nil, nil, err
	}
	result = func() (prison.Isolation, error) { return b.backend.Start(ctx, b.spec) }
	if b.misled() {
		return result, func() {}, nil
	}
	result = beside(result)
	return result, func() { result() }, nil //nolint:errcheck // or it was asked for
}

// fillBeforehand fills the workspace in a plain prison of its own, where there can be one: while a container starts, which takes
// longer than all the rest, or where variables could mislead. It reports whether it did: what it could not do, or not
// wholly, is done again inside.
func (b newBox) fillBeforehand(ctx context.Context, snap *snapshot.Snapshot, include []gitops.UserFile) bool {
	if b.overlaid() && !b.misled() {
		return false
	}
	spec := b.spec
	spec.Image, spec.Runtime, spec.Env, spec.Network = "", "", nil, prison.NetworkNone
	box, err := plain().Open(ctx, spec)
	if err != nil {
		return false
	}
	return b.fillIn(ctx, box, snap, include) == nil
}

// fill fills the workspace in the prison, which runs.
func (b newBox) fill(ctx context.Context, snap *snapshot.Snapshot, include []gitops.UserFile) error {
	box, err := b.backend.Attach(ctx, b.spec)
	if err != nil {
		return err
	}
	return b.fillIn(ctx, box, snap, include)
}

func (b newBox) fillIn(ctx context.Context, box prison.Prison, snap *snapshot.Snapshot, include []gitops.UserFile) error {
	step, end := b.report.Begin("filling the workspace")
	defer end()
	w := workspaceIn(box)
	run := w.Run
	w.Run = func(ctx context.Context, p gitops.Process) (int, error) {
		p.Stdin = &countedReader{Reader: p.Stdin, step: step, what: "filling the workspace, MiB"}
		return run(ctx, p)
	}
	err := snap.Fill(ctx, w)
	if err == nil {
		err = w.Place(ctx, include)
	}
	return errors.Join(err, box.Close())
}

// countedReader counts what is read, in MiB, as progress.
type countedReader struct {
	io.Reader
	step func(what string, done, all int)
	what string
	read int64
}

func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += int64(n)
	c.step(c.what, int(c.read>>20), 0)
	return n, err
}

// markBase makes the refs that say what an airlock began with.
func (s *Session) markBase(ctx context.Context, r airlock.Record) error {
	return s.Repo.UpdateRefs(ctx, "airlock: start",
		gitops.RefUpdate{Ref: r.Ref("base"), New: r.Base}, gitops.RefUpdate{Ref: r.Ref("promoted"), New: r.Base})
}

// announce says what there is now, and what in it may be other than expected.
func (s *Session) announce(r airlock.Record, included, changes int) {
	s.Report.Say("%s: snapshot of %s at %.12s in %s, %s prison, network %s",
		r.ID, gitops.Escape(r.BranchName()), r.Base, r.Workspace, r.Backend, r.Isolation.Network)
	if included > 0 {
		s.Report.Say("%s that git does not track went in (%s), and come out only if they are committed", count(included, "file"), environment.IncludeName)
	}
	if changes > 0 {
		s.Report.Say("%s", stayOutside(changes))
	}
	for _, weaker := range r.Isolation.Weaker {
		s.Report.Say("weaker here: %s", weaker.Text)
	}
}

func stayOutside(changes int) string {
	if changes == 1 {
		return "1 uncommitted change of yours stays outside"
	}
	return count(changes, "uncommitted change") + " of yours stay outside"
}
