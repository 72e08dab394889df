package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// app is one invocation in one repository.
type app struct {
	repo    *gitops.Repository
	store   airlock.Store
	config  gitops.Config
	dry     bool
	out     io.Writer // what was asked for
	message io.Writer // messages
}

// open finds the repository of the current folder.
func open(c *cli.Context) (*app, error) {
	version := make(chan error, 1)
	go func() { version <- gitops.CheckVersion(c.Context) }() // meanwhile, as every command waits for it
	cwd, err := workingFolder()
	if err != nil {
		return nil, err
	}
	if insideWorkspace(c.Context, cwd) {
		return nil, errInside
	}
	repo, err := gitops.OpenCurrent(c.Context, cwd)
	if old := <-version; old != nil {
		return nil, old
	}
	if err != nil {
		return nil, err
	}
	if err := ownProgram(); err != nil {
		return nil, err
	}
	a := &app{repo: repo, store: airlock.Open(repo), dry: c.Bool(dryRunFlag.Name), out: c.App.Writer, message: c.App.ErrWriter}
	if err := checkOwner(repo, a.store); err != nil {
		return nil, err
	}
	for _, parent := range c.Lineage() {
		a.dry = a.dry || parent.Bool(dryRunFlag.Name)
	}
	if a.dry {
		repo.DryRun()
	}
	if a.config, err = repo.Config(c.Context); err != nil {
		return nil, err
	}
	hostenv.Keep(strings.Fields(a.config.String("airlock.keepEnv", "")))
	if err := a.bind(c.Context); err != nil {
		return nil, err
	}
	return a, a.recover(c.Context)
}

// workingFolder is where we stand, without the links over which we came.
func workingFolder() (string, error) {
	cwd, err := os.Getwd()
	if errors.Is(err, fs.ErrNotExist) {
		return "", &hinted{errors.New("the folder we are in is gone"), []string{"cd <folder>"}}
	}
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(cwd)
}

// recover finishes or takes back a landing that was killed half-way: whatever command comes next does.
func (a *app) recover(ctx context.Context) error {
	r, err := a.store.Here()
	if err != nil || r == nil || a.dry || r.Phase != airlock.Running && r.Phase != airlock.Stopped {
		return err
	}
	return a.engine(*r).Recover(ctx)
}

// insideWorkspace tells whether a folder is in a workspace, without running git there: what git would obey in
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

// here returns the airlock of this worktree, finishing a clear that was interrupted first.
func (a *app) here(ctx context.Context) (airlock.Record, error) {
	r, err := a.store.Here()
	if err != nil {
		return airlock.Record{}, err
	}
	if r == nil || r.Phase == airlock.Starting {
		return airlock.Record{}, errNoAirlock
	}
	if r.Phase == airlock.Clearing {
		return airlock.Record{}, errors.Join(errNoAirlock, a.finishClearing(ctx, *r))
	}
	return *r, nil
}

// current is an airlock as it is by now: another command may have been at it while we waited.
func (a *app) current(r airlock.Record) (airlock.Record, error) {
	now, err := a.store.Load(r.ID)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.Phase == airlock.Clearing {
		return r, errCleared
	}
	return now, err
}

// overtaken reads what went wrong with an airlock that another command has cleared meanwhile as that.
func (a *app) overtaken(ctx context.Context, r airlock.Record, err error) error {
	var child childStatus
	if err == nil || errors.As(err, &child) || ctx.Err() != nil {
		return err
	}
	if _, gone := a.current(r); errors.Is(gone, errCleared) {
		return gone
	}
	return err
}

// finishClearing removes what an interrupted clear left, unless another command is at it.
func (a *app) finishClearing(ctx context.Context, r airlock.Record) error {
	if a.dry {
		return nil
	}
	unlock, err := a.store.TryLock()
	if errors.Is(err, airlock.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	if again, err := a.store.Load(r.ID); err != nil || again.Phase != airlock.Clearing {
		return nil
	}
	return a.erase(ctx, r)
}

// spec describes the prison of an airlock.
func (a *app) spec(r airlock.Record) (prison.Spec, error) {
	network, err := prison.ParseNetwork(r.Isolation.Network)
	tools := make([]prison.Tool, len(r.Tools))
	for i, t := range r.Tools {
		tools[i] = prison.Tool(t)
	}
	env := r.Env
	if r.Setup != nil {
		env = slices.Concat(r.Setup.Env, r.Env) // of two values the later one counts
	}
	return prison.Spec{
		ID: r.ID, Dir: filepath.Join(a.store.Dir(r.ID), "prison"), Workspace: a.store.Workspace(r),
		UID: r.Phantom.UID, GID: r.Phantom.GID, User: r.Ghost.Login(), Hostname: r.Ghost.Hostname(),
		Name: r.Workspace + "-" + a.repo.Name(), Image: r.Image, Runtime: r.Runtime,
		Env: env, Tools: tools, Root: r.Rootfs, Network: network, Limits: prison.Limits(r.Isolation.Limits),
	}, err
}

// engine returns what promotes the commits of an airlock. It is to be closed.
func (a *app) engine(r airlock.Record) *promote.Engine {
	return &promote.Engine{Repo: a.repo, Store: a.store, Record: r,
		Open: func(ctx context.Context) (promote.Exporter, error) { return a.openExporter(ctx, r) },
	}
}

// inRepository opens the repository before a command acts.
func inRepository(act func(*cli.Context, *app) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		a, err := open(c)
		if err != nil {
			return err
		}
		return act(c, a)
	}
}

// onAirlock also finds the airlock of this worktree, which must be there.
func onAirlock(act func(*cli.Context, *app, airlock.Record) error) cli.ActionFunc {
	return inRepository(func(c *cli.Context, a *app) error {
		r, err := a.here(c.Context)
		if err != nil {
			return err
		}
		return a.overtaken(c.Context, r, act(c, a, r))
	})
}

// attach connects to the running prison of an airlock.
func (a *app) attach(ctx context.Context, r airlock.Record) (prison.Prison, error) {
	if a.store.WorkspaceGone(r) {
		return nil, fmt.Errorf("the workspace %s is gone: %w", r.Workspace, prison.ErrNotRunning)
	}
	return a.attachAnyway(ctx, r)
}

func (a *app) attachAnyway(ctx context.Context, r airlock.Record) (prison.Prison, error) {
	spec, err := a.spec(r)
	if err != nil {
		return nil, err
	}
	return a.backend(r).Attach(ctx, spec)
}

// prisonRuns tells whether the prison of an airlock answers, and has a workspace.
func (a *app) prisonRuns(ctx context.Context, r airlock.Record) (bool, error) {
	if a.store.WorkspaceGone(r) {
		return false, nil
	}
	return a.answers(ctx, r)
}

// answers tells whether the prison of an airlock answers.
func (a *app) answers(ctx context.Context, r airlock.Record) (bool, error) {
	p, err := a.attachAnyway(ctx, r)
	if errors.Is(err, prison.ErrNotRunning) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, p.Close()
}

// quarantine is where an airlock's inner objects are checked.
func (a *app) quarantine(r airlock.Record) string { return promote.QuarantineDir(a.store.Dir(r.ID)) }

// show lets a command show its output, see [ui.Paging].
func (a *app) show(ctx context.Context, command string, pages bool, print func(out io.Writer, p ui.Paint) error) error {
	return ui.Paging{Config: a.config, Command: command, Pages: pages, Git: a.repo.Pager}.Show(ctx, print)
}

// currentConfig is the configuration that git would obey here, in a repository or not; none where it cannot be read.
func currentConfig(ctx context.Context) gitops.Config {
	ctx = context.WithoutCancel(ctx) // one that was interrupted still speaks
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
