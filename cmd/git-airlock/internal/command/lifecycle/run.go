package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/request"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/record"
)

func runCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "run", Usage: "run a command in a prison to its end, and land its commits",
		UsageText: "git airlock run [options] -- COMMAND...\ngit airlock run [AGENT] -p TASK [options] [-- ARGUMENTS...]",
		Description: "Uses the airlock if it is running, and starts it otherwise. If run started the airlock, it also stops it. With several\n" +
			"runs at once, the last one to end stops it.\n\n" +
			"With -p, run gives the task to an agent, without its interface and without questions. Without the name of an agent it is the\n" +
			"one of airlock.agent.default. git-airlock-agents(1) lists the agents.\n\n" +
			"With --json, run prints one document when the commits have landed: the exit status of the command, the end of its output,\n" +
			"the branch before and after, and what is held. The output of the command itself goes to standard error.",
		Flags: append(request.Flags(), taskFlag, maxTimeFlag, cmdline.JSONFlag),
		Action: cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
			agent, argv, err := asked(c, s)
			switch {
			case err != nil:
				return err
			case agent == nil && len(argv) == 0:
				return ui.Usagef("run: no command; type git airlock run -- COMMAND...")
			case agent != nil && !agent.Asks:
				return ui.Usagef("run: no task for %s; type git airlock run %[1]s -p TASK", agent.Name)
			}
			wanted, err := request.Of(c, s, nil, agent)
			if err != nil {
				return err
			}
			wanted.Anew = hostenv.Anew
			if hostenv.IsAnew() {
				wanted.Given = nil // they have been obeyed
			}
			most, err := maxTime(c)
			if err != nil {
				return err
			}
			if c.Bool(cmdline.JSONFlag.Name) {
				return runForJSON(c, s, wanted, argv, most)
			}
			return runInside(c.Context, s, wanted, argv, most, nil, nil)
		}),
	}, cmdline.Takes{Most: 1, Inside: true, Status: true})
}

// runForJSON runs a command as runInside does, and prints a summary of the run.
func runForJSON(c *cli.Context, s *session.Session, wanted session.Request, argv []string, most time.Duration) error {
	d := summary{Argv: argv}
	if wanted.Agent != nil {
		d.Agent = wanted.Agent.Name
	}
	if s.Dry {
		err := runInside(c.Context, s, wanted, argv, most, nil, nil)
		if err == nil {
			err = d.foretell(c.Context, s)
		}
		if err == nil {
			err = ui.PrintJSON(c.App.Writer, d)
		}
		return err
	}
	begin := func(ctx context.Context, r airlock.Record) error {
		return d.begin(context.WithoutCancel(ctx), s, r) // the document is printed also if the time is over
	}
	err := runInside(c.Context, s, wanted, argv, most, io.MultiWriter(os.Stderr, &d.output), begin)
	if d.ID == "" {
		return err
	}
	if err := d.end(c.Context, s, err); err != nil {
		return err
	}
	return errors.Join(err, ui.PrintJSON(c.App.Writer, d))
}

// runInside runs a command or an agent in the running airlock, or in one that it starts. It ends the command after the time most; 0 means
// that the time is not limited. Before the command it calls begin, which may be nil. The output goes to out, see [visit]. If the command
// fails and a commit is held, runInside returns the error of the command.
func runInside(ctx context.Context, s *session.Session, wanted session.Request, argv []string, most time.Duration, out io.Writer,
	begin func(context.Context, airlock.Record) error) error {
	cmdline.KeepWorking()
	var recorded recording
	ran, held := s.Run(ctx, wanted, func(ctx context.Context, r airlock.Record) error {
		switch {
		case s.Dry && wanted.Agent != nil:
			s.Report.Say("would run %s in the prison and promote its commits", wanted.Agent.Name)
			return nil
		case s.Dry:
			s.Report.Say("would run %q in the prison and promote its commits", argv)
			return nil
		}
		what := argv
		if wanted.Agent != nil {
			what = []string{wanted.Agent.Name, wanted.Agent.Task}
		}
		summoning, end := context.WithCancel(ctx)
		ready := summoned(summoning, s, r, argv, wanted.Agent) // during the checkpoint, which does not read the agent's home
		defer ready()                                          //nolint:errcheck // visit returns the error
		defer end()
		return cmdline.Checkpoints(s, r).Around(ctx, what, func(before record.CheckpointRange) error {
			if err := recorded.begin(ctx, s, r, argv, wanted.Agent, before); err != nil {
				return err
			}
			err := noticeRefusals(ctx, s, r, wanted.Agent, func(ctx context.Context) error {
				return within(ctx, s, most, func(ctx context.Context) error {
					defer context.AfterFunc(ctx, end)()
					if begin != nil {
						if err := begin(ctx, r); err != nil {
							return err
						}
					}
					return visit(ctx, s, r, ready, wanted.Agent, out, recorded.Active)
				})
			})
			recorded.ended(ctx, s, err)
			return err
		})
	})
	recorded.finish(context.WithoutCancel(ctx), s)
	if status, known := cmdline.ChildStatus(ran); known && status != 0 && wanted.Agent != nil {
		s.Report.Say("%s has ended with status %d", wanted.Agent.Name, status)
	}
	if errors.Is(ran, syscall.EPIPE) && ctx.Err() == nil { // a ^C also breaks pipes to other processes
		ran = cmdline.Shown(cmdline.ErrUnread)
	}
	_, refused := errors.AsType[*environment.Refusal](held)
	if held != nil && (ran != nil || refused) {
		s.Report.Say("%s", gitops.Text(held.Error()))
		s.Report.Hint(session.Next(held)...)
		held = cmdline.Shown(held)
	}
	return cmp.Or(ran, held)
}
