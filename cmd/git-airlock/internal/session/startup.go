package session

import (
	"context"
	"fmt"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// runStartup runs the services of a setup if the prison was just started, and its startup commands unless they have completed in
// this airlock already.
func (s *Session) runStartup(ctx context.Context, r airlock.Record, setup environment.Setup, started bool) error {
	if s.Dry || len(setup.Prestart)+len(setup.Startup) == 0 {
		return nil
	}
	unlock, err := s.Store.LockFile(ctx, r.ID, "startup.lock")
	if err != nil {
		return err
	}
	defer unlock()
	box, err := s.Prisons().Attach(ctx, r)
	if err != nil {
		return err
	}
	defer box.Close()
	if started && len(setup.Prestart) > 0 {
		if err := s.Environment().Serve(ctx, box, setup.Prestart); err != nil {
			return err
		}
	}
	digest := environment.Digest([]byte(fmt.Sprintf("%q", setup.Startup)))
	done, err := s.Store.Startup(r.ID)
	if err != nil || done == digest {
		return err
	}
	if err := s.Environment().RunStartup(ctx, box, setup.Startup); err != nil {
		return err
	}
	return s.Store.SetStartup(r.ID, digest)
}

// launch runs the agent's command detached.
func (s *Session) launch(ctx context.Context, r airlock.Record, command []string) error {
	if len(command) == 0 || s.Dry {
		return nil
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	running, err := s.Prisons().Launched(ctx, r)
	if err != nil {
		return err
	}
	if running != nil && !running.Exited {
		return &environment.Refusal{Text: fmt.Sprintf("the prison is running %q already", running.Argv), Next: []string{"git airlock status", "git airlock stop"}}
	}
	box, err := s.Prisons().Attach(ctx, r)
	if err != nil {
		return err
	}
	defer box.Close()
	if err := box.Launch(ctx, prison.Process{Argv: command, Terminal: s.Terminal}); err != nil {
		return err
	}
	s.Report.Say("launched %s", gitops.Text(fmt.Sprintf("%q", command)))
	return nil
}
