package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/edge"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/request"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
)

var (
	taskFlag    = &cli.StringFlag{Name: "prompt", Aliases: []string{"p"}, Usage: "the `task` for the agent"}
	maxTimeFlag = &cli.StringFlag{Name: "max-time", Usage: "end the command after this `time`, such as 90m, with status 124"}
)

// asked returns the agent that a command line names, or the command after "--". The words after "--" are then the agent's arguments.
// A task is for the agent of the settings if none is named.
func asked(c *cli.Context, s *session.Session) (*session.Agent, []string, error) {
	inside, words, task := edge.Inside(c), edge.Words(c), c.String(taskFlag.Name)
	var name string
	switch {
	case len(words) > 0:
		name = words[0]
	case c.IsSet(taskFlag.Name):
		if name = request.DefaultAgent(s); name == "" {
			return nil, nil, ui.Usagef("-p: for which agent? Name it before -p, or in the setting airlock.agent.default")
		}
	default:
		return nil, inside, nil
	}
	a, err := request.Agent(c, s, name)
	if err != nil {
		return nil, nil, err
	}
	a.Words = inside
	if c.IsSet(taskFlag.Name) {
		if task == "" {
			return nil, nil, ui.Usagef("-p: the task is empty")
		}
		a.Asks, a.Task = true, task
	}
	return a, nil, nil
}

// errLate is the cause of the end of a command at --max-time.
var errLate = errors.New("the command took longer than --max-time")

// limited returns a context that ends with [errLate] after --max-time.
func limited(c *cli.Context) (context.Context, context.CancelFunc, error) {
	if !c.IsSet(maxTimeFlag.Name) {
		return c.Context, func() {}, nil
	}
	most, err := time.ParseDuration(c.String(maxTimeFlag.Name))
	if err != nil || most <= 0 {
		return nil, nil, ui.Usagef("--max-time: %q is no time; want one such as 90m or 2h30m", c.String(maxTimeFlag.Name))
	}
	ctx, end := context.WithTimeoutCause(c.Context, most, errLate)
	return ctx, end, nil
}

// inTime returns the result of a command, or the status of timeout(1) if --max-time ended it.
func inTime(ctx context.Context, s *session.Session, err error) error {
	const late = 124
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(ctx), errLate) {
		s.Report.Say("%s", errLate)
		return edge.EndedWith(late)
	}
	return err
}
