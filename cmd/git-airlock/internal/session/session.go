package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// Reporter is told what happens during a call, and asks the user.
type Reporter = environment.Reporter

// Session is the work of one caller in one repository.
type Session struct {
	Repo   *gitops.Repository
	Store  airlock.Store
	Config gitops.Config
	Dry    bool // only say what would be done
	Report Reporter
	Now    func() time.Time
	// Terminal is what a launched command gets: one like the caller's.
	Terminal *prison.Terminal
}

// Options say how a session is opened.
type Options struct {
	Dry      bool
	Report   Reporter
	Now      func() time.Time
	Terminal *prison.Terminal // for a launched command
	Sudo     int              // the user on whose behalf root acts; 0 for nobody
}

// Open opens the repository of the current folder, and finishes there what was interrupted.
func Open(ctx context.Context, with Options) (*Session, error) {
	version := make(chan error, 1)
	go func() { version <- gitops.CheckVersion(ctx) }() // meanwhile, as every command waits for it
	cwd, err := workingFolder()
	if err != nil {
		return nil, err
	}
	if insideWorkspace(ctx, cwd) {
		return nil, errInside
	}
	repo, err := gitops.OpenCurrent(ctx, cwd)
	if old := <-version; old != nil {
		return nil, old
	}
	if err != nil {
		return nil, err
	}
	if err := ownProgram(); err != nil {
		return nil, err
	}
	s := &Session{Repo: repo, Store: airlock.Open(repo), Dry: with.Dry, Report: with.Report, Now: with.Now, Terminal: with.Terminal}
	if err := checkOwner(repo, s.Store, with.Sudo); err != nil {
		return nil, err
	}
	if s.Dry {
		repo.DryRun()
	}
	if s.Config, err = repo.Config(ctx); err != nil {
		return nil, err
	}
	KeepEnvironment(s.Config)
	if err := s.bind(ctx); err != nil {
		return nil, err
	}
	return s, s.recover(ctx)
}

// KeepEnvironment gives programs of the host the variables that the user's configuration names.
func KeepEnvironment(c gitops.Config) { hostenv.Keep(strings.Fields(c.String("airlock.keepEnv", ""))) }

// Peek opens the repository of the current folder without changing or finishing anything there; nil if there is none that
// git may look into.
func Peek(ctx context.Context, with Options) *Session {
	cwd, err := workingFolder()
	if err != nil || insideWorkspace(ctx, cwd) {
		return nil
	}
	repo, err := gitops.OpenCurrent(ctx, cwd)
	if err != nil {
		return nil
	}
	repo.DryRun()
	s := &Session{Repo: repo, Store: airlock.Open(repo), Dry: true, Report: with.Report, Now: with.Now}
	if s.Config, err = repo.Config(ctx); err != nil {
		return nil
	}
	return s
}

// CurrentConfig returns the configuration that git would obey in the current folder, in a repository or not; none where it
// cannot be read.
func CurrentConfig(ctx context.Context) gitops.Config {
	ctx = context.WithoutCancel(ctx) // an interrupted command still speaks
	cwd, err := workingFolder()
	if err != nil || insideWorkspace(ctx, cwd) {
		cwd = "/" // what an agent configures is obeyed nowhere
	}
	config, err := gitops.CurrentConfig(ctx, cwd)
	if err != nil {
		return gitops.Config{}
	}
	return config
}

// workingFolder returns the current folder, without the links over which we came.
func workingFolder() (string, error) {
	cwd, err := os.Getwd()
	if errors.Is(err, fs.ErrNotExist) {
		return "", environment.Advise(errors.New("the folder we are in is gone"), "cd <folder>")
	}
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(cwd)
}

// insideWorkspace reports whether a folder is in a workspace, without running git there: what git would obey in
// it was written by an agent.
func insideWorkspace(ctx context.Context, dir string) bool {
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		id, ok := identity.ParseWorkspaceName(filepath.Base(dir))
		if !ok {
			continue
		}
		if info, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && !gitops.OwnedByUs(info) {
			return true // one whose worktree is gone may be left alone
		}
		state := filepath.Dir(dir) // host state, if the workspace is there
		if repo, err := gitops.Open(ctx, state); err == nil {
			state = airlock.Open(repo).Dir(id)
		}
		if _, err := os.Lstat(filepath.Join(state, "state.json")); err == nil {
			return true
		}
	}
	return false
}

// ownProgram refuses to go on if this program lies in a work tree of the repository: its daemon starts it again, and the user
// starts it next time.
func ownProgram() error {
	if _, err := hostenv.Self(); errors.Is(err, hostenv.ErrOwnProgram) {
		return &environment.Refusal{Text: err.Error(), Next: []string{"scripts/install  # or copy it to a folder outside of the repository, and start that one"}}
	}
	return nil
}

// recover finishes or takes back a landing that was killed half-way: whatever command comes next does.
func (s *Session) recover(ctx context.Context) error {
	r, err := s.Store.Here()
	if err != nil || r == nil || s.Dry || r.Phase != airlock.Running && r.Phase != airlock.Stopped {
		return err
	}
	return s.Engine(*r).Recover(ctx)
}

// Here returns the airlock of this worktree, finishing a clear that was interrupted first. It fails with [ErrNoAirlock] if
// there is none.
func (s *Session) Here(ctx context.Context) (airlock.Record, error) {
	r, err := s.Store.Here()
	if err != nil {
		return airlock.Record{}, err
	}
	if r == nil || r.Phase == airlock.Starting {
		return airlock.Record{}, ErrNoAirlock
	}
	if r.Phase == airlock.Clearing {
		return airlock.Record{}, errors.Join(ErrNoAirlock, s.finishClearing(ctx, *r))
	}
	return *r, nil
}

// Current returns the record of an airlock as it is by now: another command may have changed it while we waited. It fails with
// [ErrCleared] if another command has cleared it.
func (s *Session) Current(r airlock.Record) (airlock.Record, error) {
	now, err := s.Store.Load(r.ID)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.Phase == airlock.Clearing {
		return r, ErrCleared
	}
	return now, err
}

// lock keeps other starts, stops and clears in this repository out, and sweeps up after those that were killed.
func (s *Session) lock(ctx context.Context) (func(), error) {
	if s.Dry {
		return func() {}, nil
	}
	unlock, err := s.Store.Lock(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Store.Sweep(); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// Engine returns the engine that promotes the commits of an airlock. It must be closed.
func (s *Session) Engine(r airlock.Record) *promote.Engine {
	return &promote.Engine{Repo: s.Repo, Store: s.Store, Record: r,
		Open: func(ctx context.Context) (promote.Exporter, error) { return s.prisons().openExporter(ctx, r) }}
}

// Environment returns what makes the environments of this repository's commits.
func (s *Session) Environment() environment.Builder {
	return environment.Builder{Repo: s.Repo, Config: s.Config, Dry: s.Dry, Containers: containers, Report: s.Report, Now: s.Now}
}

// CommittedSetup returns the setup of the commit that is checked out.
func (s *Session) CommittedSetup(ctx context.Context) (environment.Setup, error) {
	head, err := s.base(ctx)
	if err != nil {
		return environment.Setup{}, err
	}
	return s.Environment().Read(ctx, head.Tree)
}

// base returns what is checked out, if a snapshot can be taken of it.
func (s *Session) base(ctx context.Context) (gitops.Head, error) {
	head, err := s.Repo.Head(ctx)
	switch {
	case err != nil:
		return head, err
	case head.Branch == "":
		return head, gitops.ErrDetached
	case head.Commit == "":
		if n, err := s.Repo.Changes(ctx); err == nil && n > 0 {
			return head, environment.Advise(gitops.ErrUnborn, "git add . && git commit -m 'Initial commit'")
		}
		return head, gitops.ErrUnborn
	}
	if target, err := s.Repo.SymbolicRef(ctx, head.Branch); err != nil || target != "" {
		return head, errors.Join(err, environment.Advise(
			fmt.Errorf("%s is another name of %s, which commits would not land on", gitops.Escape(head.Branch), gitops.Escape(target)),
			"git symbolic-ref HEAD "+gitops.Pasteable(target)))
	}
	return head, nil
}

// count is a number of things: "1 commit", "2 commits".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// checkOwner refuses to work on what is another user's: root can, and would leave files there that lock its owner out.
func checkOwner(repo *gitops.Repository, store airlock.Store, sudo int) error {
	owner, ok := store.Foreign()
	if ok {
		return environment.Advise(fmt.Errorf("the airlocks of this repository belong to %s", userName(owner)), asUser(owner)...)
	}
	if sudo == 0 || os.Geteuid() != 0 || store.Ours() {
		return nil
	}
	if info, err := os.Stat(repo.CommonDir); err != nil || !gitops.OwnedBy(info, sudo) {
		return nil
	}
	return environment.Advise(fmt.Errorf("this repository belongs to %s: an airlock of root's would lock them out", userName(sudo)),
		"git airlock start  # without sudo")
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "uid " + strconv.Itoa(uid)
}

// asUser is how somebody else's airlock is reached.
func asUser(uid int) []string {
	if uid == 0 {
		return []string{"sudo git airlock list", "sudo git airlock clear"}
	}
	return []string{"sudo -u '#" + strconv.Itoa(uid) + "' git airlock list"}
}
