package cmdline

import (
	"context"
	"errors"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/launched"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/runs"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/attest"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// Runs returns the keeper of an airlock's run records.
func Runs(s *session.Session, r airlock.Record) runs.Keeper {
	return runs.Keeper{Prisons: s.Prisons(), Record: r, Now: s.Now, Program: s.Version, Checkpoint: func(ctx context.Context) int {
		all, _, err := Checkpoints(s, r).List(ctx)
		if err != nil || len(all) == 0 {
			return 0
		}
		return all[len(all)-1].Number
	}, Waiting: func(ctx context.Context) (all []record.Waiting, err error) {
		state, err := s.Elsewhere(ctx, r)
		for _, w := range Waiting(state, false) {
			next, _ := words.CutComment(w.Next)
			all = append(all, record.Waiting{Ref: w.Ref, Commits: w.Commits, Next: strings.Join(ledger.WithStart([]string{next}, false), " && ")})
		}
		return all, err
	}}
}

// recorder keeps the records of a session's runs.
type recorder struct{ session *session.Session }

// Launching implements [session.Recorder].
func (o recorder) Launching(ctx context.Context, r airlock.Record, argv []string, agent *session.Agent) (failed func(error) error, err error) {
	c := runs.Command{Kind: record.Launched, Argv: argv, Checkpoints: Checkpoints(o.session, r).Before(ctx, argv)}
	if agent != nil {
		c.Agent = agent.Name
	}
	run, err := Runs(o.session, r).Begin(ctx, c)
	if err != nil {
		return nil, err
	}
	note := launched.Note{Agent: c.Agent, Words: argv}
	if agent != nil {
		note.Words = agent.Words
	}
	if t := o.session.Terminal; t != nil {
		note.Size = t.Size
	}
	if err := note.Write(ctx, o.session.Store, r.ID); err != nil {
		return nil, errors.Join(err, run.Cancel())
	}
	return func(err error) error {
		mention(o.session, run.End(context.WithoutCancel(ctx), NotStarted(err)))
		return err
	}, nil
}

// NotStarted returns the result of a run whose command could not be started. Its exit status is the one of [ExitStatus], as in a shell.
func NotStarted(err error) runs.Result {
	r := runs.Result{Failure: err.Error()}
	if status := ExitStatus(ownFailure{err}); errors.Is(err, prison.ErrNotFound) || errors.Is(err, prison.ErrNotExecutable) {
		r.Exit = &status
	}
	return r
}

// Runs implements [session.Recorder].
func (o recorder) Runs(ctx context.Context, r airlock.Record) (attest.Runs, error) {
	return Runs(o.session, r).Naming(ctx)
}

// Again returns the command line that launches the last launched command again, and an empty string if that is not known.
func Again(s *session.Session, r airlock.Record) string {
	note, ok, err := launched.Read(s.Store.Dir(r.ID))
	if err != nil || !ok {
		return ""
	}
	return note.Again()
}

// Ended implements [session.Recorder].
func (o recorder) Ended(ctx context.Context, r airlock.Record) {
	mentionRecord(o.session, Runs(o.session, r).FinishOver(ctx, true))
}

// finishOver finishes what a killed process has begun for the airlock here: a restore of the workspace, and the records of runs that
// have ended.
func finishOver(ctx context.Context, s *session.Session) {
	r, err := s.Store.Here()
	if err == nil && r != nil && !s.Dry && !r.Phase.Passing() {
		mention(s, Checkpoints(s, *r).Finish(ctx))
		mentionRecord(s, Runs(s, *r).FinishOver(ctx, false))
	}
}

// mentionRecord prints why a record is not made. It prints nothing about a backend that is not available: a command that needs the backend
// says so itself, and a later one makes the record.
func mentionRecord(s *session.Session, err error) {
	if u := (*prison.Unavailable)(nil); !errors.As(err, &u) {
		mention(s, err)
	}
}

// mention prints an error that does not make the command fail.
func mention(s *session.Session, err error) {
	if err != nil {
		s.Report.Say("%s", gitops.Text(err.Error()))
	}
}
