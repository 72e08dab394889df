package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/inbound"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/prison/apart"
	"github.com/git-airlock/git-airlock/prison/watch"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Daemon promotes the commits of an airlock until a signal ends it. reopen opens the repository again after it was moved. If
// another daemon of the airlock is running, Daemon returns nil at once.
func (s *Session) Daemon(ctx context.Context, r airlock.Record, out *os.File, reopen func() (*Session, error)) error {
	logger := log.New(daemon.BoundedLog{File: out}, "", log.LstdFlags|log.LUTC)
	ready := os.NewFile(readyDescriptor, "ready")
	config := s.daemonConfig(r, logger)
	config.Ready = func() {
		_, _ = io.WriteString(ready, "ready")
		_ = ready.Close()
	}
	err := daemon.Run(ctx, config)
	for errors.Is(err, daemon.ErrMoved) {
		there, now, followed := s.findMovedSoon(ctx, r, reopen)
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
	return errors.Join(err, s.Prisons().SweepOrphaned(ctx, r))
}

// findMovedSoon calls findMoved until it succeeds or removalTime is over. While a program removes the repository, files are missing.
func (s *Session) findMovedSoon(ctx context.Context, r airlock.Record, reopen func() (*Session, error)) (there *Session, now airlock.Record, err error) {
	soon, cancel := context.WithTimeout(ctx, removalTime)
	defer cancel()
	for {
		if there, now, err = s.findMoved(ctx, r, reopen); err == nil || soon.Err() != nil {
			return there, now, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// findMoved finds the new place of an airlock whose worktree was moved while its daemon ran. The daemon's working folder has moved with
// the worktree, so reopen opens the new place. If the airlock is not there, findMoved stops it if the store has it, and returns nil.
func (s *Session) findMoved(ctx context.Context, r airlock.Record, reopen func() (*Session, error)) (*Session, airlock.Record, error) {
	moved, err := reopen()
	if err == nil && moved.Repo.InPlace() {
		if now, err := moved.Here(ctx); err == nil && now.Session == r.Session {
			return moved, now, nil
		}
	}
	if s.Repo.Replaced() {
		return nil, r, nil // another repository has the place of this one
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
		now.Top = folder // the workspace may still exist
	}
	return nil, now, s.binding().Abandon(ctx, &now)
}

const (
	// readyDescriptor is the descriptor on which the daemon reports that it holds its lock.
	readyDescriptor = 3
	// readyTime bounds the wait for a daemon that hangs. One that ends is noticed at once, and a busy machine may be slow.
	readyTime = time.Minute
	// removalTime bounds the search for a worktree that a program may be removing.
	removalTime = 5 * time.Second
)

// startDaemon starts the daemon of an airlock, if none is running, and returns when it holds its lock. The daemon has its own
// process session, so that it outlives the terminal.
func (s *Session) startDaemon(r airlock.Record) error {
	pid, err := daemon.PID(s.Store, r.ID)
	if errors.Is(err, daemon.ErrElsewhere) {
		return nil // a daemon is running where this process cannot see it
	}
	if err != nil || pid != 0 {
		return err
	}
	self, err := hostenv.Self()
	if err != nil {
		return err
	}
	logFile, err := daemon.OpenLog(promote.LogFile(s.Store.Dir(r.ID)))
	if err != nil {
		return err
	}
	defer logFile.Close()
	ready, said, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	process, err := apart.Start(self, []string{self, "daemon"}, &os.ProcAttr{
		Dir: s.Repo.Top, Env: s.Repo.Environment(), Files: []*os.File{nil, logFile, logFile, said}, // said is readyDescriptor
	})
	said.Close()
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	defer func() { _ = process.Release() }()
	_ = ready.SetReadDeadline(s.Now().Add(readyTime))
	if text, _ := io.ReadAll(ready); string(text) == "ready" {
		return nil
	}
	if pid, err := daemon.PID(s.Store, r.ID); err == nil && pid != 0 {
		return nil // another command has started it
	}
	if later, err := s.Store.Load(r.ID); err == nil && later.Phase != airlock.Running {
		return nil // another command has stopped it meanwhile
	}
	return daemon.NotStarted(s.Repo, logFile.Name())
}

// Heal starts the daemon of a running airlock again if it has died.
func (s *Session) Heal(r airlock.Record) error {
	if s.Dry || r.Phase != airlock.Running {
		return nil
	}
	return s.startDaemon(r)
}

// daemonConfig returns the configuration of an airlock's daemon: an engine, and a guard of its prison.
func (s *Session) daemonConfig(r airlock.Record, logger *log.Logger) daemon.Config {
	e := s.Engine(r)
	e.Landed = nil
	e.Store = e.Store.WithWaiting(nil) // nobody reads the messages of a daemon that waits for a lock
	g := watch.New(s.Prisons().Guarded(r), logger)
	e.Guard = diskGuard{g}
	in := s.Prisons()
	in.Store = e.Store
	guard := func(ctx context.Context) {
		var mending sync.WaitGroup
		mending.Go(func() {
			in.Mend(ctx, r, func() {
				if err := in.Trust(ctx, r, s.Now()); err != nil {
					logger.Printf("programs inside do not trust the network that was connected again: %v", err)
				}
			})
		})
		mending.Go(func() { inbound.Attend(ctx, in, r, func() *promote.Engine { return s.Engine(r) }, logger) })
		g.Run(ctx)
		mending.Wait()
	}
	return daemon.Config{Engine: e, Log: logger, Guard: guard, News: g.News(), Landed: s.attestInDaemon(r, logger)}
}

// diskGuard converts the findings of a guard to holds.
type diskGuard struct{ *watch.Guard }

func (g diskGuard) Full() *ledger.Hold {
	full := g.Guard.Full()
	if full == nil {
		return nil
	}
	next := "df -h " + gitops.Pasteable(full.Disk)
	switch {
	case full.Enough > 0:
		next = fmt.Sprintf("git config airlock.maxWorkspace %dg", full.Enough)
	case full.Inodes:
		next = "df -i " + gitops.Pasteable(full.Disk)
	}
	return &ledger.Hold{Reason: ledger.WorkspaceFull, Message: events.Full(full.Message, full.Runs, full.Stops), Next: []string{next, "git airlock start"}}
}
