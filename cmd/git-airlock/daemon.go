package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
)

// daemonCommand is the daemon's own command; users never type it.
func daemonCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "daemon", Hidden: true, Usage: "promote until told to stop",
		Action: onAirlock(func(c *cli.Context, a *app, r airlock.Record) error {
			debug.SetMemoryLimit(memoryWanted)
			ready := os.NewFile(readyDescriptor, "ready")
			logger := log.New(boundedLog{os.Stderr}, "", log.LstdFlags|log.LUTC)
			config := a.daemonConfig(r, logger)
			config.Ready = func() {
				_, _ = io.WriteString(ready, "ready")
				_ = ready.Close()
			}
			err := daemon.Run(c.Context, config)
			for errors.Is(err, daemon.ErrMoved) {
				there, now, followed := a.follow(c, r)
				if err = followed; there == nil {
					logger.Print("the worktree is gone")
					break
				}
				a, r = there, now
				logger.Printf("moved to %q", a.repo.Top)
				err = daemon.Run(c.Context, a.daemonConfig(r, logger))
			}
			if errors.Is(err, airlock.ErrBusy) {
				return nil
			}
			return errors.Join(err, a.desert(c.Context, r))
		}),
	}, inside, false)
}

// desert ends the container of an airlock that somebody has removed with its repository: nobody else remembers that there is one.
func (a *app) desert(ctx context.Context, r airlock.Record) error {
	if r.Backend != containers.Name() {
		return nil
	}
	if _, err := os.Lstat(a.store.Dir(r.ID)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return containers.SweepDeserted(context.WithoutCancel(ctx))
}

const (
	// memoryWanted is what the daemon's heap grows to before garbage is looked for at once.
	memoryWanted = 160 << 20
	// readyDescriptor is where the daemon says that it holds its lock: the first of exec.Cmd's ExtraFiles.
	readyDescriptor = 3
	readyTime       = 10 * time.Second
	// logLimit is the size at which a daemon's log starts anew.
	logLimit = 1 << 20
)

// startDaemon starts the daemon of an airlock, if none runs, and returns once it holds its lock. It is a
// session of its own, so that it outlives the terminal.
func (a *app) startDaemon(r airlock.Record) error {
	pid, err := daemon.PID(a.store, r.ID)
	if errors.Is(err, daemon.ErrElsewhere) {
		return nil // it does there what there is to do
	}
	if err != nil || pid != 0 {
		return err
	}
	self, err := hostenv.Self()
	if err != nil {
		return err
	}
	logFile, err := openLog(promote.LogFile(a.store.Dir(r.ID)))
	if err != nil {
		return err
	}
	defer logFile.Close()
	ready, said, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd := exec.Command(self, "daemon") //nolint:forbidigo,noctx // it outlives this command
	cmd.Dir, cmd.Env = a.repo.Top, a.repo.Environment()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = logFile, logFile, []*os.File{said}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	said.Close()
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	defer func() { _ = cmd.Process.Release() }()
	_ = ready.SetReadDeadline(time.Now().Add(readyTime))
	if text, _ := io.ReadAll(ready); string(text) == "ready" {
		return nil
	}
	if pid, err := daemon.PID(a.store, r.ID); err == nil && pid != 0 {
		return nil // another command was quicker
	}
	if now, err := a.store.Load(r.ID); err == nil && now.Phase != airlock.Running {
		return nil // another command has stopped it meanwhile
	}
	return fmt.Errorf("the daemon did not start; its log is %q", logFile.Name())
}

// boundedLog is a log that starts anew when it is full: an agent has a say in how often there is something to be logged.
type boundedLog struct{ *os.File }

func (l boundedLog) Write(p []byte) (int, error) {
	if info, err := l.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > logLimit {
		_ = l.Truncate(0) // it is open for appending
	}
	return l.File.Write(p)
}

func openLog(name string) (*os.File, error) {
	flags := os.O_CREATE | os.O_APPEND | os.O_WRONLY
	if info, err := os.Lstat(name); err == nil && info.Size() > logLimit {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(name, flags, 0o600)
}

// heal starts the daemon of a running airlock again if it has died.
func (a *app) heal(_ context.Context, r airlock.Record) error {
	if a.dry || r.Phase != airlock.Running {
		return nil
	}
	return a.startDaemon(r)
}
