package lifecycle

import (
	"context"
	"os"
	"runtime/debug"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/record"
)

// daemonCommand runs the daemon. Users never type it.
func daemonCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "daemon", Hidden: true, Usage: "promote until a signal ends it",
		Action: cmdline.OnAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			debug.SetMemoryLimit(memoryWanted)
			ctx, cancel := context.WithCancel(c.Context)
			events.Note(s.Store.Dir(r.ID), r.Session, record.EventDaemon, "the daemon began")
			var wait sync.WaitGroup
			wait.Go(func() { cmdline.Checkpoints(s, r).AfterLaunched(ctx) })
			wait.Go(func() { cmdline.Checkpoints(s, r).Attend(ctx) })
			wait.Go(func() {
				if err := cmdline.Checkpoints(s, r).Serve(ctx); err != nil && ctx.Err() == nil {
					s.Report.Say("the daemon makes no checkpoints, so that commands make their own, which takes longer: %v", err)
				}
			})
			wait.Go(func() { cmdline.Runs(s, r).Watch(ctx) })
			defer wait.Wait()
			defer cancel()
			return s.Daemon(c.Context, r, os.Stderr, func() (*session.Session, error) { return cmdline.Open(c) })
		}),
	}, cmdline.Takes{})
}

// memoryWanted is the heap size in bytes from which the daemon collects garbage more often.
const memoryWanted = 160 << 20
