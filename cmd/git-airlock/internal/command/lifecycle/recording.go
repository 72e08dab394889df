package lifecycle

import (
	"context"
	"errors"
	"syscall"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/runs"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/record"
)

func (d *directRun) begin(ctx context.Context, r airlock.Record, before record.CheckpointRange) (err error) {
	c := runs.Command{Kind: record.Direct, Argv: d.argv, Checkpoints: before}
	if agent := d.wanted.Agent; agent != nil {
		c.Agent, c.Argv = agent.Name, []string{agent.Name, "-p", agent.Task}
	}
	d.active, err = cmdline.Runs(d.session, r).Begin(ctx, c)
	return err
}

// ended stores how the command ended. err is the error of the command.
func (d *directRun) ended(ctx context.Context, err error) {
	at := d.session.Now().UTC()
	d.active.Sample(ctx)
	var lost *prison.OutputLost
	status, known := cmdline.ChildStatus(err)
	switch {
	case known:
		if key, own := cmdline.EndedByKey(err); key != "" {
			d.result.Key, status = key, own
		}
		d.result.Exit = &status
		d.result.Late, d.result.Spent = errors.Is(err, errLate), errors.Is(err, errSpent)
	case errors.Is(err, prison.ErrNotRunning):
		d.result.Stopped = true
	case errors.Is(err, context.Canceled), errors.Is(err, syscall.EPIPE): // the command had begun, and this process did not wait for its end
	case errors.As(err, &lost):
		d.result.OutputLost = lost.Error()
		if lost.Ended {
			d.result.Exit = &lost.Status
		}
	default:
		d.result = cmdline.NotStarted(err)
	}
	d.result.At = at
}

// finish makes the record, after the commits have landed. It prints an error, and does not return it: the command has not failed.
func (d *directRun) finish(ctx context.Context) {
	if d.active == nil {
		return
	}
	if err := d.active.End(ctx, d.result); err != nil {
		d.session.Report.Say("the run is not recorded: %s", gitops.Text(err.Error()))
	}
}
