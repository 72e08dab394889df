package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
)

var maxTimeFlag = &cli.StringFlag{Name: "max-time", Usage: "end the command after this `time`, such as 90m, with status 124"}

// maxTime returns the value of --max-time, 0 without it.
func maxTime(c *cli.Context) (time.Duration, error) {
	if !c.IsSet(maxTimeFlag.Name) {
		return 0, nil
	}
	most, err := time.ParseDuration(c.String(maxTimeFlag.Name))
	if err != nil || most <= 0 {
		return 0, ui.Usagef("--max-time: %q is not a time; want one such as 90m or 2h30m", c.String(maxTimeFlag.Name))
	}
	return most, nil
}

// errLate is the error of a command that the time limit ended. Its status is that of timeout(1).
var errLate = fmt.Errorf("the time limit: %w", cmdline.EndedWith(124))

// within calls act with a context that ends after the time most; 0 means that the time is not limited. If the time ended act, the
// error is [errLate].
func within(ctx context.Context, s *session.Session, most time.Duration, act func(context.Context) error) error {
	if most == 0 {
		return act(ctx)
	}
	limited, end := context.WithTimeout(ctx, most)
	defer end()
	err := act(limited)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		s.Report.Say("the command took longer than --max-time %s", most)
		return errLate
	}
	return err
}
