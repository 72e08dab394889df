package lifecycle

import (
	"context"
	"errors"
	"syscall"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/runs"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/record"
)

// recording is the record of a run of git airlock run. The zero value is of a run that has not begun.
type recording struct {
	*runs.Active
	result runs.Result
}

func (o *recording) begin(ctx context.Context, s *session.Session, r airlock.Record, argv []string, agent *session.Agent, before record.CheckpointRange) (err error) {
	c := runs.Command{Kind: record.Direct, Argv: argv, Checkpoints: before}
	if agent != nil {
		c.Agent, c.Argv = agent.Name, []string{agent.Name, "-p", agent.Task}
	}
	o.Active, err = cmdline.Runs(s, r).Begin(ctx, c)
	return err
}

// ended stores how the command ended. err is the error of the command.
func (o *recording) ended(ctx context.Context, s *session.Session, err error) {
	at := s.Now().UTC()
	o.Sample(ctx)
	var lost *prison.OutputLost
	status, known := cmdline.ChildStatus(err)
	switch {
	case known:
		o.result.Exit, o.result.Key = &status, cmdline.EndedByKey(err)
		o.result.Late, o.result.Spent = errors.Is(err, errLate), errors.Is(err, errSpent)
	case errors.Is(err, prison.ErrNotRunning):
		o.result.Stopped = true
	case errors.Is(err, context.Canceled), errors.Is(err, syscall.EPIPE): // the command had begun, and this process did not wait for its end
	case errors.As(err, &lost):
		o.result.OutputLost = lost.Error()
		if lost.Ended {
			o.result.Exit = &lost.Status
		}
	default:
		o.result = cmdline.NotStarted(err)
	}
	o.result.At = at
}

// finish makes the record, after the commits have landed. It prints an error, and does not return it: the command has not failed.
func (o *recording) finish(ctx context.Context, s *session.Session) {
	if o.Active == nil {
		return
	}
	if err := o.End(ctx, o.result); err != nil {
		s.Report.Say("the run is not recorded: %s", gitops.Text(err.Error()).String())
	}
}
