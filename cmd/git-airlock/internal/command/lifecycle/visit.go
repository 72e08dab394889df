package lifecycle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/launched"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/runs"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/terminal"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func visitCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "visit", Usage: "open a shell, or run a command, in the running prison as the agent",
		UsageText: "git airlock visit [-- COMMAND...]\ngit airlock visit AGENT [-- ARGUMENTS...]\ngit airlock visit --attach | --log",
		Description: "The command gets a terminal if visit has one, and pipes otherwise. visit never starts a prison. It ends when the command\n" +
			"ends. Processes that the command left in the background keep running; visit shows their output until they are silent for\n" +
			"a moment. With an AGENT, visit opens that agent's interface, see git-airlock-agents(1).\n\n" +
			"If its terminal is closed, or a signal ends visit or run, the command gets SIGHUP, and is killed two seconds later.\n\n" +
			"With --attach, visit joins the terminal of the command that \"git airlock start -- COMMAND\" launched, and returns the\n" +
			"command's status. On a terminal ^] detaches, and the command keeps running. Several terminals can join. The command gets the\n" +
			"size of the one that joined or was resized last, so a smaller one beside it shows lines that are too long.\n\n" +
			"With --log, visit prints what that terminal shows, and above it what has left the terminal at its top, as plain text: from\n" +
			"the last megabyte or two of the command's output, also after it has ended or the prison was stopped.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "attach", Usage: "join the terminal of the launched command"},
			&cli.BoolFlag{Name: "log", Usage: "print what the launched command's terminal shows, and its latest output"},
		},
		Action: cmdline.OnAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			agent, inside, err := asked(c, s)
			if err != nil {
				return err
			}
			attach, log := c.Bool("attach"), c.Bool("log")
			if attach && log || (attach || log) && (inside != nil || agent != nil) {
				return ui.Usagef("visit: --attach, --log and a command exclude each other")
			}
			if err := s.Heal(r); err != nil {
				return err
			}
			switch {
			case attach:
				return join(c.Context, s, r)
			case log:
				return showLog(c.Context, s, r, c.App.Writer)
			}
			if s.Dry {
				return wouldRun(c.Context, s, r, inside)
			}
			err = cmdline.Checkpoints(s, r).AfterCommand(c.Context, inside, func() error {
				return summon(c.Context, s, r, inside, agent).visit(c.Context, nil, nil)
			})
			if agent != nil {
				return err
			}
			return misplaced(c, s, inside, err)
		}),
	}, cmdline.Takes{Most: 1, Inside: true, Status: true})
}

// shell starts the agent's shell.
var shell = []string{"/bin/sh", "-c", `exec "${SHELL:-/bin/sh}"`}

// orShell returns a command, or the shell for none.
func orShell(argv []string) []string {
	if len(argv) == 0 {
		return shell
	}
	return argv
}

func wouldRun(ctx context.Context, s *session.Session, r airlock.Record, argv []string) error {
	box, err := s.Prisons().Attach(ctx, r)
	if err != nil {
		return err
	}
	s.Report.Say("would run %q in the prison of %s", orShell(argv), r.ID)
	return box.Close()
}

// visitor is an agent, or a command, that visits a running prison.
type visitor struct {
	session *session.Session
	record  airlock.Record
	agent   *session.Agent                 // nil for a command
	ready   func() (prison.Process, error) // waits until the prison is ready
}

// summon makes a prison ready for an agent, in the background. If agent is nil, the visitor is the command argv.
func summon(ctx context.Context, s *session.Session, r airlock.Record, argv []string, agent *session.Agent) visitor {
	if agent == nil {
		return visitor{s, r, nil, func() (prison.Process, error) { return prison.Process{Argv: orShell(argv)}, nil }}
	}
	ready := sync.OnceValues(func() (p prison.Process, err error) {
		box, err := s.Prisons().Attach(ctx, r)
		if err != nil {
			return p, err
		}
		defer box.Close()
		return s.Summon(ctx, r, box, *agent)
	})
	go ready() //nolint:errcheck // a later call returns the same error
	return visitor{s, r, agent, ready}
}

// visit runs the visitor's process in the prison, with this process's standard streams. If out is not nil, the process gets no terminal,
// and its output goes there. run, which may be nil, keeps the output. visit returns the process's status in its error, see
// [cmdline.EndedWith].
func (v visitor) visit(ctx context.Context, out io.Writer, run *runs.Active) error {
	p, err := v.ready()
	if err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	box, err := v.session.Prisons().Attach(ctx, v.record)
	if err != nil {
		return err
	}
	defer box.Close()
	keys := &cmdline.Keys{Reader: os.Stdin}
	p.Stdin, p.Stdout, p.Stderr = os.Stdin, os.Stdout, os.Stderr
	restore := func() {}
	if out != nil {
		p.Stdout = out
	} else if restore, err = cmdline.ConnectTerminal(&p); err != nil {
		return err
	}
	if p.Terminal != nil {
		p.Stdin = keys
	}
	run.Keep(&p)
	status, err := box.Exec(ctx, p)
	restore()
	if err != nil {
		return v.agent.Advise(err)
	}
	if run != nil {
		return keys.RunEndedWith(status)
	}
	return keys.EndedWith(status)
}

// detachKey is ^], as for telnet(1).
const detachKey = 0x1d

// join connects this terminal to the launched command's terminal, until the command ends or the user types ^]. It returns the
// command's status in its error, see [cmdline.EndedWith].
func join(ctx context.Context, s *session.Session, r airlock.Record) error {
	box, err := s.Prisons().Attach(ctx, r)
	if err != nil {
		return err
	}
	defer box.Close()
	state, err := launchedIn(ctx, s, r)
	switch {
	case err != nil:
		return err
	case state.Exited:
		s.Report.Say("the command has ended with status %d", state.Status)
		s.Report.Hint("git airlock visit --log")
		return cmdline.EndedWith(state.Status)
	case s.Dry:
		s.Report.Say("would join the terminal of the launched command of %s", r.ID)
		return nil
	}
	interactive := ui.IsTerminal(os.Stdin)
	if interactive {
		s.Report.Say("^] detaches")
	}
	noteSize := func() {
		if interactive && ui.IsTerminal(os.Stdout) {
			_ = launched.Resize(ctx, s.Store, r.ID, cmdline.SizeOf(os.Stdout)) // only visit --log needs the size
		}
	}
	noteSize() // may wait: ^C still ends visit
	p := prison.Process{Stdin: os.Stdin, Stdout: os.Stdout}
	restore, err := cmdline.ConnectTerminal(&p)
	if err != nil {
		return err
	}
	joined, detach := context.WithCancel(ctx)
	defer detach()
	keys := &detaching{Reader: os.Stdin, detach: detach}
	if p.Terminal != nil {
		// The record of the run says "failed" if the key cannot be noted. The key itself must reach the command.
		p.Stdin = &cmdline.Keys{Reader: keys, First: func(name string) { _ = launched.Type(ctx, s.Store, r.ID, name) }}
	}
	err = box.Join(joined, p)
	restore()
	noteSize() // the user may have resized the terminal meanwhile
	switch {
	case keys.detached.Load():
		s.Report.Say("detached; the command keeps running")
		return nil
	case err != nil && !errors.Is(err, prison.ErrNotLaunched):
		return err
	}
	switch state, err = launchedIn(ctx, s, r); {
	case err != nil:
		return err
	case !state.Exited:
		return environment.Advise(errors.New("this terminal could not keep up with the command's output"), "git airlock visit --attach")
	}
	return cmdline.EndedWith(state.Status)
}

var errNotLaunched = environment.Advise(errors.New("no command was launched here"), "git airlock start -- COMMAND")

// launchedIn returns the state of the launched command of an airlock. It fails with errNotLaunched if there is none.
func launchedIn(ctx context.Context, s *session.Session, r airlock.Record) (*prison.Launched, error) {
	state, err := s.Prisons().Launched(ctx, r)
	if err == nil && state == nil {
		err = errNotLaunched
	}
	return state, err
}

// detaching reads input up to the key that detaches.
type detaching struct {
	io.Reader
	detach   func()
	detached atomic.Bool
}

func (d *detaching) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	i := bytes.IndexByte(p[:n], detachKey)
	if i < 0 {
		return n, err
	}
	d.detached.Store(true)
	d.detach()
	return i, io.EOF
}

// showLog prints what the launched command's terminal shows, and what has left it at its top, as plain text.
func showLog(ctx context.Context, s *session.Session, r airlock.Record, out io.Writer) error {
	shown, err := s.Prisons().Shown(ctx, r)
	if errors.Is(err, prison.ErrNotLaunched) {
		return errNotLaunched
	}
	if err != nil {
		return err
	}
	defer shown.Close()
	const atMost = 4 << 20
	content, err := io.ReadAll(io.LimitReader(shown, atMost))
	if err != nil {
		return err
	}
	note, _, err := launched.Read(s.Store.Dir(r.ID))
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, terminal.Text(content, int(note.Size.Cols), int(note.Size.Rows)))
	return err
}
