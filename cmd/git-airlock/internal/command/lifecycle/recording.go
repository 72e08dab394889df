package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/edge"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/runs"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/record"
)

// recording is the record of a run of git airlock run. The zero value is of a run that has not begun.
type recording struct {
	*runs.Active
	begun  time.Time
	result runs.Result
}

func (o *recording) begin(ctx context.Context, s *session.Session, r airlock.Record, argv []string, agent *session.Agent) (err error) {
	c := runs.Command{Kind: record.Direct, Argv: argv}
	if agent != nil {
		c.Agent, c.Argv = agent.Name, []string{agent.Name, "-p", agent.Task}
	}
	o.begun = s.Now()
	o.Active, err = edge.Runs(s, r).Begin(ctx, c)
	return err
}

// late is the exit status of a command that the time limit ended.
const late = 124

// isLate reports whether the time limit of a command ended it: most, or 0 for none.
func isLate(status int, took, most time.Duration) bool {
	return status == late && most > 0 && took >= most
}

// ended notes how the command ended. err is its error, and most its time limit or 0.
func (o *recording) ended(ctx context.Context, s *session.Session, err error, most time.Duration) {
	o.result.At = s.Now().UTC()
	o.Sample(ctx)
	status, known := edge.ChildStatus(err)
	switch {
	case known:
		o.result.Exit = &status
		o.result.Late = isLate(status, o.result.At.Sub(o.begun), most)
	case errors.Is(err, context.Canceled):
		o.result.Stopped = true
	default:
		o.result.Failure = err.Error()
	}
}

// finish makes the record, after the commits have landed. A failure is reported, and is not one of the command.
func (o *recording) finish(ctx context.Context, s *session.Session) {
	if o.Active == nil {
		return
	}
	if err := o.End(ctx, o.result); err != nil {
		s.Report.Say("the run is not recorded: %s", gitops.Text(err.Error()).String())
	}
}
