package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/snapshot"
)

// beginning is what a new airlock begins with.
type beginning struct {
	base    gitops.Head
	out     gitops.Patterns   // what is left out of the snapshot
	loose   []gitops.UserFile // what goes in beside it
	secrets *screening
	setup   commitSetup
	outside func() (int, error) // counts the user's uncommitted changes
}

// beside does something while other things are done; who asks what came of it waits.
func beside[T any](do func() (T, error)) func() (T, error) {
	result := sync.OnceValues(do)
	go result() //nolint:errcheck // asked for again by who waits
	return result
}

// build makes all there is to an airlock, from the snapshot to the daemon. When it returns, nothing of it goes on.
func (a *app) build(ctx context.Context, r *airlock.Record, from beginning) error {
	r.Session = identity.SessionID(time.Now(), r.ID)
	spec, err := a.spec(*r)
	if err != nil {
		return err
	}
	b := a.backend(*r)
	if err := os.Mkdir(spec.Dir, 0o700); err != nil {
		return err
	}
	line := ui.NewProgress("taking the snapshot")
	defer line.Close()
	take := beside(func() (*snapshot.Snapshot, error) { return a.take(ctx, *r, from) })
	defer take() //nolint:errcheck // or it was asked for
	// Before there is a workspace, which git is told to ignore just now.
	if _, err := from.outside(); err != nil {
		return err
	}
	if err := b.Prepare(ctx, spec); err != nil {
		return err
	}
	apart := b.Name() == "native" && len(spec.Env) > 0
	start, wait := starting(ctx, b, spec, apart)
	defer wait()
	s, err := take()
	line.Close()
	if err == nil {
		err = from.secrets.verdict(a.message)
	}
	if err != nil {
		return err
	}
	filled := (b.Name() != "native" || apart) && a.fillMeanwhile(ctx, spec, s, from.loose)
	isolation, err := start()
	if err != nil {
		return err
	}
	isolated(r, isolation)
	r.Root, r.Part = s.Root, s.Part
	if err := a.checkInside(ctx, *r, from.setup); err != nil {
		return err
	}
	refs := beside(func() (any, error) { return nil, a.markBase(ctx, *r) })
	if !filled {
		err = a.fill(ctx, b, spec, s, from.loose)
	}
	if _, refsErr := refs(); err != nil || refsErr != nil {
		return errors.Join(err, refsErr)
	}
	return a.goLive(r)
}

// starting begins to start a prison, unless the workspace is filled apart before: under the overlay of a native prison that runs,
// nobody else may change it. Who has called wait has nothing of it going on any more.
func starting(ctx context.Context, b prison.Backend, spec prison.Spec, apart bool) (start func() (prison.Isolation, error), wait func()) {
	start = func() (prison.Isolation, error) { return b.Start(ctx, spec) }
	if apart {
		return start, func() {}
	}
	start = beside(start)
	return start, func() { start() } //nolint:errcheck // or it was asked for
}

// goLive says that an airlock is whole, and starts its daemon.
func (a *app) goLive(r *airlock.Record) error {
	r.Phase = airlock.Running
	if err := a.store.Save(*r); err != nil {
		return err
	}
	return a.startDaemon(*r)
}

// markBase makes the refs that tell what an airlock began with.
func (a *app) markBase(ctx context.Context, r airlock.Record) error {
	return a.repo.UpdateRefs(ctx, "airlock: start",
		gitops.RefUpdate{Ref: r.Ref("base"), New: r.Base}, gitops.RefUpdate{Ref: r.Ref("promoted"), New: r.Base})
}

// take takes the snapshot, and begins to search it.
func (a *app) take(ctx context.Context, r airlock.Record, from beginning) (*snapshot.Snapshot, error) {
	s, err := snapshot.Take(ctx, a.repo, a.quarantine(r), from.base, from.out, r.Ghost)
	if err == nil {
		from.secrets.begin(gitops.OpenQuarantine(a.quarantine(r), r.Format))
	}
	return s, err
}

func startPrison(ctx context.Context, b prison.Backend, spec prison.Spec) (prison.Isolation, error) {
	if err := b.Prepare(ctx, spec); err != nil {
		return prison.Isolation{}, err
	}
	return b.Start(ctx, spec)
}

// fillMeanwhile fills the workspace in a native prison of its own, where there can be one: while a container starts, which takes
// longer than all the rest, or before a native one with variables, which could mislead what we run (PATH, GIT_DIR). It tells
// whether it did: what it could not do, or not wholly, is done again inside.
func (a *app) fillMeanwhile(ctx context.Context, spec prison.Spec, s *snapshot.Snapshot, loose []gitops.UserFile) bool {
	spec.Image, spec.Runtime, spec.Env, spec.Network = "", "", nil, prison.NetworkNone
	box, err := native.New().Open(ctx, spec)
	if err != nil {
		return false
	}
	return fillIn(ctx, box, s, loose) == nil
}

// fill fills the workspace in a prison that runs.
func (a *app) fill(ctx context.Context, b prison.Backend, spec prison.Spec, s *snapshot.Snapshot, loose []gitops.UserFile) error {
	box, err := b.Attach(ctx, spec)
	if err != nil {
		return err
	}
	return fillIn(ctx, box, s, loose)
}

func fillIn(ctx context.Context, box prison.Prison, s *snapshot.Snapshot, loose []gitops.UserFile) error {
	line := ui.NewProgress("filling the workspace")
	defer line.Close()
	w := workspaceIn(box)
	run := w.Run
	w.Run = func(ctx context.Context, p gitops.Process) (int, error) {
		p.Stdin = line.Count(p.Stdin, "filling the workspace, MiB")
		return run(ctx, p)
	}
	err := s.Fill(ctx, w)
	if err == nil {
		err = w.Place(ctx, loose)
	}
	return errors.Join(err, box.Close())
}
