package main

import (
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// daemonCommand runs the daemon. Users never type it.
func daemonCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "daemon", Hidden: true, Usage: "promote until a signal ends it",
		Action: onAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			debug.SetMemoryLimit(memoryWanted)
			return s.Daemon(c.Context, r, os.Stderr, func() (*session.Session, error) { return open(c) })
		}),
	}, inside, false)
}

// memoryWanted is the heap size in bytes from which the daemon collects garbage more often.
const memoryWanted = 160 << 20
