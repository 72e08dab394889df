/*
Package session starts, resumes, runs, promotes, stops and clears an airlock. It does not print: it reports progress to a
[Reporter]. An error is an [environment.Refusal] if the user can do something about it, and a [RequestError] if the request is
wrong.

# The data path

	Request -> resolved -> snapshot.Take -> prison.Backend.Start -> daemon

[Session.Start] resolves a request for the situation that it finds, takes the snapshot while the prison starts, fills the
workspace, and starts the daemon, which promotes what the agent commits. If the situation has changed by the time the
repository is locked, the request is resolved again.
*/
package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/inbound"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/worktrees"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/attest"
	"github.com/git-airlock/git-airlock/promote/daemon"
)

// Reporter prints events during a call, and asks the user questions.
type Reporter = environment.Reporter

// Session is the work of one caller in one repository.
type Session struct {
	Options
	Repo   *gitops.Repository
	Store  airlock.Store
	Config gitops.Config
	// Settings are the values of Config with their files.
	Settings []gitops.Setting
	// Recorder keeps records of runs. May be nil.
	Recorder Recorder

	knowsValues bool           // this process has read values of credentials from where the user keeps them
	left        *promote.State // of the airlock that a run or a stop has left, when its commits had landed; nil before
}

// Recorder keeps records of runs.
type Recorder interface {
	// Launching is called before a command is launched. If the launch fails, the caller calls failed with the error; failed returns it.
	Launching(ctx context.Context, r airlock.Record, argv []string, agent *Agent) (failed func(error) error, err error)
	// Ended is called when the prison of an airlock has ended and nothing more lands.
	Ended(ctx context.Context, r airlock.Record)
	Runs(ctx context.Context, r airlock.Record) (attest.Runs, error) // see [attest.Attester]
}

// Options are the options of a session.
type Options struct {
	Dry      bool // only print the actions
	Report   Reporter
	Now      func() time.Time
	Terminal *prison.Terminal // of a launched command; it is like the caller's
	Sudo     int              // the uid of the user who called sudo; 0 for none
	Version  string           // of this program
}

// ErrCopy reports a copy of a repository whose airlock is in use elsewhere.
var ErrCopy = worktrees.ErrCopy

// Open opens the repository of the current folder, and finishes interrupted work there. With an [ErrCopy] it returns a session, which
// serves commands that leave airlocks alone.
func Open(ctx context.Context, with Options) (*Session, error) {
	cwd, err := outerFolder(ctx)
	if err != nil {
		return nil, err
	}
	repo, settings, err := gitops.OpenWithSettings(ctx, cwd)
	if err != nil {
		return nil, err
	}
	if err := ownProgram(); err != nil {
		return nil, err
	}
	store := airlock.Open(repo).WithWaiting(daemon.Waiting(with.Report.Say))
	s := &Session{Options: with, Repo: repo, Store: store, Settings: settings, Config: gitops.ConfigOf(settings)}
	if err := worktrees.CheckOwner(repo, s.Store, with.Sudo); err != nil {
		return nil, err
	}
	if s.Dry {
		repo.DryRun()
	}
	given, err := repo.CommandConfig(ctx)
	if err != nil {
		return nil, err
	}
	KeepEnvironment(s.Config.With(s.Earlier().Settings).With(given))
	if err := s.binding().Bind(ctx); err != nil {
		return s, err
	}
	return s, s.recover(ctx)
}

// OpenBare opens the bare repository of the current folder, for commands that need neither a work tree nor an airlock.
func OpenBare(ctx context.Context, with Options) (*Session, error) {
	cwd, err := outerFolder(ctx)
	if err != nil {
		return nil, err
	}
	repo, err := gitops.OpenBare(ctx, cwd)
	if err != nil {
		return nil, err
	}
	s := &Session{Options: with, Repo: repo, Store: airlock.Open(repo)}
	if s.Settings, err = repo.Settings(ctx); err != nil {
		return nil, err
	}
	s.Config = gitops.ConfigOf(s.Settings)
	KeepEnvironment(s.Config)
	return s, nil
}

func (s *Session) binding() worktrees.Binding {
	return worktrees.Binding{Repo: s.Repo, Store: s.Store, Prisons: s.Prisons(), Report: s.Report, Dry: s.Dry}
}

// KeepEnvironment passes the variables that the user's configuration names to programs on the host.
func KeepEnvironment(c gitops.Config) { hostenv.Keep(strings.Fields(c.String("airlock.keepEnv", ""))) }

// Peek opens the repository of the current folder without changing anything there. It returns nil if there is none that git may
// read.
func Peek(ctx context.Context, with Options) *Session {
	cwd, err := outerFolder(ctx)
	if err != nil {
		return nil
	}
	repo, err := gitops.OpenCurrent(ctx, cwd)
	if err != nil {
		return nil
	}
	return peek(ctx, with, repo)
}

// PeekBeside is like Peek in a bare repository, from the first of its worktrees that is there. They share the host state.
func PeekBeside(ctx context.Context, with Options) *Session {
	if cwd, err := outerFolder(ctx); err == nil {
		paths, _ := gitops.CurrentGit(cwd).Worktrees(ctx)
		for _, path := range paths {
			if repo, err := gitops.Open(ctx, path); err == nil {
				return peek(ctx, with, repo)
			}
		}
	}
	return nil
}

func peek(ctx context.Context, with Options, repo *gitops.Repository) *Session {
	repo.DryRun()
	with.Dry = true
	config, err := repo.Config(ctx)
	if err != nil {
		return nil
	}
	return &Session{Options: with, Repo: repo, Store: airlock.Open(repo), Config: config}
}

// CurrentConfig returns the configuration that git would use in the current folder, inside or outside of a repository. It is empty
// if it cannot be read.
func CurrentConfig(ctx context.Context) gitops.Config { return gitops.ConfigOf(CurrentSettings(ctx)) }

// CurrentSettings returns the values of [CurrentConfig] with their files.
func CurrentSettings(ctx context.Context) []gitops.Setting {
	ctx = context.WithoutCancel(ctx) // an interrupted command still prints messages
	cwd, err := outerFolder(ctx)
	if err != nil {
		cwd = "/"
	}
	settings, _ := gitops.CurrentGit(cwd).Settings(ctx)
	return settings
}

// outerFolder returns the current folder, and an error if it is in a workspace: git would obey configuration that an agent wrote.
func outerFolder(ctx context.Context) (string, error) {
	cwd, err := workingFolder()
	if err == nil && insideWorkspace(ctx, cwd) {
		return "", errInside
	}
	return cwd, err
}

// workingFolder returns the current folder, with links resolved.
func workingFolder() (string, error) {
	cwd, err := os.Getwd()
	if errors.Is(err, fs.ErrNotExist) {
		return "", environment.Advise(errors.New("the current folder does not exist any more"), "cd FOLDER")
	}
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(cwd)
}

// insideWorkspace reports whether a folder is in a workspace. It does not run git there.
func insideWorkspace(ctx context.Context, dir string) bool {
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		id, ok := identity.ParseWorkspaceName(filepath.Base(dir))
		if !ok {
			continue
		}
		if info, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && !gitops.OwnedByUs(info) {
			return true // the workspace of a removed worktree may remain
		}
		state := filepath.Dir(dir) // the host state, if the workspace is in it
		if repo, err := gitops.Open(ctx, state); err == nil {
			state = airlock.Open(repo).Dir(id)
		}
		if _, err := os.Lstat(filepath.Join(state, "state.json")); err == nil {
			return true
		}
	}
	return false
}

// ownProgram returns an error if this program is in a work tree of the repository: an agent's commit could replace it, and the
// daemon and the user would run it later.
func ownProgram() error {
	if _, err := hostenv.Self(); errors.Is(err, hostenv.ErrOwnProgram) {
		return &environment.Refusal{Text: err.Error(), Next: []string{"scripts/install  # or copy it to a folder outside of the repository, and start that one"}}
	}
	return nil
}

// recover finishes or rolls back a landing that was killed. Every command does this first.
func (s *Session) recover(ctx context.Context) error {
	r, err := s.Store.Here()
	if _, ok := errors.AsType[*airlock.DamagedError](err); ok {
		return nil // a command that needs the airlock here returns the error
	}
	if err != nil || r == nil || s.Dry || r.Phase != airlock.Running && r.Phase != airlock.Stopped {
		return err
	}
	return s.Engine(*r).Recover(ctx)
}

// Here returns the airlock of this worktree. It first finishes an interrupted clear. It fails with [ErrNoAirlock] if there is no airlock.
func (s *Session) Here(ctx context.Context) (airlock.Record, error) {
	r, err := s.Store.Here()
	if err != nil {
		return airlock.Record{}, err
	}
	if r == nil || r.Phase == airlock.Starting {
		return airlock.Record{}, ErrNoAirlock
	}
	if r.Phase == airlock.Clearing {
		err := ErrNoAirlock
		if unfinished := s.binding().FinishClearing(ctx, *r); unfinished != nil {
			err = fmt.Errorf("%w: its clear is not finished: %w", ErrNoAirlock, unfinished)
		}
		return airlock.Record{}, err
	}
	return *r, nil
}

// Earlier returns the record that earlier starts of the airlock here have written. If there is no airlock, it returns the zero value.
func (s *Session) Earlier() airlock.Record {
	r, err := s.Store.Here()
	if err != nil || r == nil || r.Phase.Passing() {
		return airlock.Record{} // a start reports the error
	}
	return *r
}

// Current reads the record of an airlock again, because another command may have changed it meanwhile. It fails with [ErrCleared]
// if another command has cleared it.
func (s *Session) Current(r airlock.Record) (airlock.Record, error) {
	now, err := s.Store.Load(r.ID)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.Phase == airlock.Clearing {
		return r, ErrCleared
	}
	return now, err
}

// lock takes the lock of starts, stops and clears in this repository, and removes the remains of killed ones.
func (s *Session) lock(ctx context.Context) (func(), error) {
	if s.Dry {
		return func() {}, nil
	}
	unlock, err := s.Store.Lock(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Prisons().SweepCheck(ctx); err != nil {
		s.Report.Say("%s", err)
	}
	if err := s.Prisons().SweepUnrecorded(ctx); err != nil {
		s.Report.Say("%s", err)
	}
	if err := s.Store.Sweep(); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// Prisons returns the prisons of the airlocks of this repository.
func (s *Session) Prisons() prisons.Prisons {
	return prisons.Prisons{Repo: s.Repo, Store: s.Store, Config: s.Config, Report: s.Report}
}

// Engine returns the engine that promotes the commits of an airlock. It must be closed.
func (s *Session) Engine(r airlock.Record) *promote.Engine {
	e := &promote.Engine{Repo: s.Repo, Store: s.Store, Record: r, Checker: s.checker(r), Landed: func(ctx context.Context) { s.attestLanded(ctx, r) },
		Open: func(ctx context.Context) (promote.Exporter, error) { return s.Prisons().OpenExporter(ctx, r) }}
	if notes, ok := s.networkNotes(r); ok {
		e.Egress = notes
	}
	return e
}

// Environment returns the builder of the environments for this repository's commits.
func (s *Session) Environment() environment.Builder {
	return environment.Builder{Repo: s.Repo, Config: s.Config, Dry: s.Dry, Containers: prisons.Containers(), Report: s.Report, Now: s.Now, Authorities: prisons.Authorities}
}

// CommittedSetup returns the setup of the checked-out commit.
func (s *Session) CommittedSetup(ctx context.Context) (environment.Setup, error) {
	head, err := inbound.Base(ctx, s.Repo, s.Config)
	if err != nil {
		return environment.Setup{}, err
	}
	return s.Environment().Read(ctx, head.Tree)
}
