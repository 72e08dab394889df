package session

import (
	"context"
	"errors"
	"io/fs"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/settings"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Run makes sure that an airlock is running, calls execute to run a command in it, and promotes, even if the command fails. The last
// run stops an airlock that a run has started. ran is the error of the command, and held the error of promoting.
func (s *Session) Run(ctx context.Context, request Request, execute func(context.Context, airlock.Record) error) (ran, held error) {
	r, leave, err := s.ensure(ctx, request)
	if ctx.Err() != nil && r.ID != "" && s.Store.StopsAfterUse(r.ID) {
		if leave != nil {
			leave() // promoteAndStop stops the airlock only if no command uses it, and this one does
		}
		err = errors.Join(ctx.Err(), s.promoteAndStop(context.WithoutCancel(ctx), r, 0))
	}
	if err != nil {
		return err, nil
	}
	if s.Dry {
		return execute(ctx, r), nil
	}
	defer leave()
	if s.knowsValues && request.Anew != nil {
		leave()
		return request.Anew(), nil
	}
	before, err := ledger.TotalLanded(s.Store.Dir(r.ID))
	if err != nil {
		return err, nil
	}
	ran = execute(ctx, r)
	leave()
	return ran, s.promoteAndStop(context.WithoutCancel(ctx), r, before)
}

// promoteAndStop promotes the commits of an airlock. It stops the airlock if a run has started it and no other command uses it.
func (s *Session) promoteAndStop(ctx context.Context, r airlock.Record, before int) error {
	if !s.Store.StopsAfterUse(r.ID) {
		return s.land(ctx, r, before)
	}
	unlock, err := s.Store.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	done, err := s.Store.LockUnused(r.ID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrCleared
	case errors.Is(err, airlock.ErrBusy):
		s.Report.Say("%s on %s keeps running: another command runs in it", r.ID, r.BranchName())
		unlock()
		return s.land(ctx, r, before)
	case err != nil:
		return err
	}
	r, err = s.stopLocked(ctx, r)
	done()
	unlock()
	if err != nil {
		return err
	}
	return s.landRest(ctx, r, before, promote.Options{Spared: true})
}

// land lands pending commits, and prints the number of commits landed since before, and which commits do not land.
func (s *Session) land(ctx context.Context, r airlock.Record, before int) error {
	l := s.landing(r)
	defer l.engine.Close()
	err := l.land(ctx, promote.Options{}, before)
	if state, unseen := l.engine.State(ctx); unseen == nil {
		l.tellElsewhere(state)
		s.left = &state
	}
	return err
}

// ensure returns the running airlock, or starts it. No other run stops it until leave is called.
func (s *Session) ensure(ctx context.Context, request Request) (r airlock.Record, leave func(), err error) {
	for tries := 3; ; tries-- {
		if r, err = s.running(ctx, request); err != nil || s.Dry {
			return r, nil, err
		}
		if leave, err = s.Store.Use(ctx, r.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return r, nil, err
		}
		if err == nil {
			runs, err := s.Prisons().Runs(ctx, r)
			if err == nil && (runs || tries == 0) {
				return r, leave, nil
			}
			leave()
			if err != nil {
				return r, nil, err
			}
			// The prison does not run: another run has just stopped the airlock. Start it again.
		} else if tries == 0 {
			return r, nil, ErrCleared
		}
	}
}

// running returns the running airlock. If none is running, it starts one, which the last run in it will stop.
func (s *Session) running(ctx context.Context, request Request) (airlock.Record, error) {
	before, err := s.Store.Here()
	if err != nil {
		return airlock.Record{}, err
	}
	if before != nil && before.Phase == airlock.Running {
		if err := settings.Check(s.Config.With(before.Settings)); err != nil {
			return *before, err
		}
		runs, err := s.Prisons().Runs(ctx, *before)
		if runs {
			if err := s.startedWithout(*before, request.Agent, request.Typed); err != nil {
				return *before, err
			}
			request.tooLate(s.Report, *before)
			s.supplyKeys(ctx, *before)
		}
		if err != nil || runs {
			return *before, errors.Join(err, s.Heal(*before))
		}
	}
	r, started, err := s.start(ctx, request, true)
	if _, ok := errors.AsType[*environment.CommandError](err); ok && started {
		err = errors.Join(err, s.Stop(context.WithoutCancel(ctx), r))
	}
	return r, err
}
