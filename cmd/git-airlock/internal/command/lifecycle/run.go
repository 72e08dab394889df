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
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/runs"
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
			"runs at once, the last one to end stops it. If ^C at its terminal ends the command, the status is 130, also if the command\n" +
			"itself ends with 0.\n\n" +
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
				wanted.Given = nil // the process before this one has used them
			}
			most, err := maxTime(c)
			if err != nil {
				return err
			}
			run := &directRun{session: s, wanted: wanted, argv: argv, most: most, again: func(err error) error { return retype(c, err) }}
			if c.Bool(cmdline.JSONFlag.Name) {
				return misplaced(c, s, argv, runForJSON(c, run))
			}
			return misplaced(c, s, argv, run.do(c.Context))
		}),
	}, cmdline.Takes{Most: 1, Inside: true, Status: true})
}

// runForJSON does a run, and prints its summary.
func runForJSON(c *cli.Context, run *directRun) error {
	s, d := run.session, summary{Argv: run.argv}
	if run.wanted.Agent != nil {
		d.Agent = run.wanted.Agent.Name
	}
	if s.Dry {
		err := run.do(c.Context)
		if err == nil {
			err = d.foretell(c.Context, s)
		}
		if err == nil {
			err = ui.PrintJSON(c.App.Writer, d)
		}
		return err
	}
	run.out = io.MultiWriter(os.Stderr, &d.output)
	run.before = func(ctx context.Context, r airlock.Record) error {
		return d.begin(context.WithoutCancel(ctx), s, r) // the document is printed also if the time is over
	}
	err := run.do(c.Context)
	if d.ID == "" {
		return err
	}
	if err := d.end(c.Context, s, err); err != nil {
		return err
	}
	return errors.Join(err, ui.PrintJSON(c.App.Writer, d))
}

// directRun is a run of git airlock run: a command or an agent, in the running airlock or in one that the run starts.
type directRun struct {
	session *session.Session
	wanted  session.Request
	argv    []string
	most    time.Duration                               // the command ends after it; 0 means that the time is not limited
	again   func(error) error                           // adds what was typed to the hints of an error of the start
	out     io.Writer                                   // for the output, see [visitor.visit]
	before  func(context.Context, airlock.Record) error // is called before the command; may be nil

	active *runs.Active // the record of the run; nil until the run begins
	result runs.Result
}

// do does the run, and prints the result of an agent. If the command fails and a commit is held, do returns the error of the command.
func (d *directRun) do(ctx context.Context) error {
	cmdline.KeepWorking()
	s, agent := d.session, d.wanted.Agent
	began := false
	ran, held := s.Run(ctx, d.wanted, func(ctx context.Context, r airlock.Record) error {
		began = true
		return d.doIn(ctx, r)
	})
	if ran != nil && !began {
		ran = d.again(ran)
	}
	d.finish(context.WithoutCancel(ctx))
	key, _ := cmdline.EndedByKey(ran)
	switch status, known := cmdline.ChildStatus(ran); {
	case !known || status == 0 || agent == nil:
	case key != "":
		s.Report.Say("%s has ended %s", key, agent.Name)
	default:
		s.Report.Say("%s has ended with status %d", agent.Name, status)
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

// doIn runs the command in a running airlock, between two checkpoints.
func (d *directRun) doIn(ctx context.Context, r airlock.Record) error {
	s, agent, what := d.session, d.wanted.Agent, d.argv
	switch {
	case s.Dry && agent != nil:
		s.Report.Say("would run %s in the prison and promote its commits", agent.Name)
		return nil
	case s.Dry:
		s.Report.Say("would run %q in the prison and promote its commits", d.argv)
		return nil
	case agent != nil:
		what = []string{agent.Name, agent.Task}
	}
	summoning, end := context.WithCancel(ctx)
	v := summon(summoning, s, r, d.argv, agent) // during the checkpoint, which does not read the agent's home
	defer v.ready()                             //nolint:errcheck // visit returns the error
	defer end()
	visit := func(ctx context.Context) error {
		defer context.AfterFunc(ctx, end)()
		if d.before != nil {
			if err := d.before(ctx, r); err != nil {
				return err
			}
		}
		return v.visit(ctx, d.out, d.active)
	}
	limited := func(ctx context.Context) error { return within(ctx, s, d.most, visit) }
	return cmdline.Checkpoints(s, r).Around(ctx, what, func(before record.CheckpointRange) error {
		if err := d.begin(ctx, r, before); err != nil {
			return err
		}
		err := noticeRefusals(ctx, s, r, agent, limited)
		d.ended(ctx, err)
		return err
	})
}
