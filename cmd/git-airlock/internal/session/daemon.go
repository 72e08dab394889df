package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/promote/daemon"

	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// Daemon promotes what is committed in an airlock until it is told to stop. reopen opens the repository anew, after it was
// moved. Nothing is wrong if another daemon does so already.
func (s *Session) Daemon(ctx context.Context, r airlock.Record, out *os.File, reopen func() (*Session, error)) error {
	logger := log.New(boundedLog{out}, "", log.LstdFlags|log.LUTC)
	ready := os.NewFile(readyDescriptor, "ready")
	config := s.daemonConfig(r, logger)
	config.Ready = func() {
		_, _ = io.WriteString(ready, "ready")
		_ = ready.Close()
	}
	err := daemon.Run(ctx, config)
	for errors.Is(err, daemon.ErrMoved) {
		there, now, followed := s.follow(ctx, r, reopen)
		if err = followed; there == nil {
			logger.Print("the worktree is gone")
			break
		}
		s, r = there, now
		logger.Printf("moved to %q", s.Repo.Top)
		err = daemon.Run(ctx, s.daemonConfig(r, logger))
	}
	if errors.Is(err, airlock.ErrBusy) {
		return nil
	}
	return errors.Join(err, s.sweepDeserted(ctx, r))
}

// follow finds where an airlock has moved to while its daemon ran, whose working folder moved along. If it is not
// to be found its worktree is gone, or was copied elsewhere, and the prison ends, too: what it works in is nobody's.
func (s *Session) follow(ctx context.Context, r airlock.Record, reopen func() (*Session, error)) (*Session, airlock.Record, error) {
	moved, err := reopen()
	if err == nil && moved.Repo.InPlace() {
		if now, err := moved.Here(ctx); err == nil && now.Session == r.Session {
			return moved, now, nil
		}
	}
	if s.Repo.Replaced() {
		return nil, r, nil // what is there now is none of ours
	}
	unlock, err := s.Store.Lock(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r, nil // the whole repository is gone
	}
	if err != nil {
		return nil, r, err
	}
	defer unlock()
	now, err := s.Store.Load(r.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, now, nil // cleared
	}
	if err != nil {
		return nil, now, err
	}
	if folder, err := workingFolder(); err == nil {
		now.Top = folder // the workspace may still be there
	}
	return nil, now, s.abandon(ctx, &now)
}

// sweepDeserted ends the prison of an airlock that somebody has removed with its repository, where the prison outlives that:
// nobody else remembers that there is one.
func (s *Session) sweepDeserted(ctx context.Context, r airlock.Record) error {
	sweeper, ok := s.prisons().backend(r).(prison.Sweeper)
	if !ok {
		return nil
	}
	if _, err := os.Lstat(s.Store.Dir(r.ID)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return sweeper.SweepDeserted(context.WithoutCancel(ctx))
}

const (
	// readyDescriptor is where the daemon says that it holds its lock: the first of exec.Cmd's ExtraFiles.
	readyDescriptor = 3
	readyTime       = 10 * time.Second
	// logLimit is the size at which a daemon's log starts anew.
	logLimit = 1 << 20
)

// startDaemon starts the daemon of an airlock, if none runs, and returns once it holds its lock. It is a
// session of its own, so that it outlives the terminal.
func (s *Session) startDaemon(r airlock.Record) error {
	pid, err := daemon.PID(s.Store, r.ID)
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
	logFile, err := openLog(promote.LogFile(s.Store.Dir(r.ID)))
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
	cmd.Dir, cmd.Env = s.Repo.Top, s.Repo.Environment()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = logFile, logFile, []*os.File{said}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	said.Close()
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	defer func() { _ = cmd.Process.Release() }()
	_ = ready.SetReadDeadline(s.Now().Add(readyTime))
	if text, _ := io.ReadAll(ready); string(text) == "ready" {
		return nil
	}
	if pid, err := daemon.PID(s.Store, r.ID); err == nil && pid != 0 {
		return nil // another command was quicker
	}
	if now, err := s.Store.Load(r.ID); err == nil && now.Phase != airlock.Running {
		return nil // another command has stopped it meanwhile
	}
	return fmt.Errorf("the daemon did not start; its log is %q", logFile.Name())
}

// Heal starts the daemon of a running airlock again if it has died.
func (s *Session) Heal(_ context.Context, r airlock.Record) error {
	if s.Dry || r.Phase != airlock.Running {
		return nil
	}
	return s.startDaemon(r)
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
