package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// containers is the backend that makes prisons out of containers, with one connection for all who use it.
var containers = docker.New(docker.Options{})

// Containers returns the backend that makes prisons out of containers.
func Containers() *docker.Backend { return containers }

// Backends returns all backends, the one first that "auto" prefers when no image is asked for.
func Backends() []prison.Backend { return []prison.Backend{native.New(), containers} }

// plain returns the backend that makes prisons without images.
func plain() prison.Backend { return native.New() }

// backendNamed returns the backend of a name, nil if there is none.
func backendNamed(name string) prison.Backend {
	for _, b := range Backends() {
		if b.Name() == name {
			return b
		}
	}
	return nil
}

// prisons are those of the airlocks of a repository.
type prisons struct {
	repo   *gitops.Repository
	store  airlock.Store
	config gitops.Config
}

func (s *Session) prisons() prisons { return prisons{s.Repo, s.Store, s.Config} }

// backend returns the backend of an airlock.
func (p prisons) backend(r airlock.Record) prison.Backend {
	if b := backendNamed(r.Backend); b != nil {
		return b
	}
	return plain()
}

// traits returns what the prison of an airlock is like.
func (p prisons) traits(r airlock.Record) prison.Traits {
	runtime := r.Runtime
	if runtime == "" {
		runtime = r.Isolation.Runtime
	}
	return p.backend(r).Traits(runtime)
}

// spec describes the prison of an airlock.
func (p prisons) spec(r airlock.Record) (prison.Spec, error) {
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
		ID: r.ID, Dir: filepath.Join(p.store.Dir(r.ID), "prison"), Workspace: p.store.Workspace(r),
		UID: r.Phantom.UID, GID: r.Phantom.GID, User: r.Ghost.Login(), Hostname: r.Ghost.Hostname(),
		Name: r.Workspace + "-" + p.repo.Name(), Image: r.Image, Runtime: r.Runtime,
		Env: env, Tools: tools, Root: r.Rootfs, Network: network, Limits: prison.Limits(r.Isolation.Limits),
	}, err
}

// quarantine is where an airlock's inner objects are checked.
func (p prisons) quarantine(r airlock.Record) string { return promote.QuarantineDir(p.store.Dir(r.ID)) }

// attach connects to the running prison of an airlock, if that has a workspace.
func (p prisons) attach(ctx context.Context, r airlock.Record) (prison.Prison, error) {
	if p.store.WorkspaceGone(r) {
		return nil, fmt.Errorf("the workspace %s is gone: %w", r.Workspace, prison.ErrNotRunning)
	}
	return p.attachAnyway(ctx, r)
}

func (p prisons) attachAnyway(ctx context.Context, r airlock.Record) (prison.Prison, error) {
	spec, err := p.spec(r)
	if err != nil {
		return nil, err
	}
	return p.backend(r).Attach(ctx, spec)
}

// runs reports whether the prison of an airlock answers, and has a workspace.
func (p prisons) runs(ctx context.Context, r airlock.Record) (bool, error) {
	if p.store.WorkspaceGone(r) {
		return false, nil
	}
	return p.answers(ctx, r)
}

// answers reports whether the prison of an airlock answers.
func (p prisons) answers(ctx context.Context, r airlock.Record) (bool, error) {
	box, err := p.attachAnyway(ctx, r)
	if errors.Is(err, prison.ErrNotRunning) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, box.Close()
}

// start makes the workspace's folder and starts the prison around it.
func (p prisons) start(ctx context.Context, b prison.Backend, spec prison.Spec) (prison.Isolation, error) {
	if err := b.Prepare(ctx, spec); err != nil {
		return prison.Isolation{}, err
	}
	return b.Start(ctx, spec)
}

// stop ends the prison of an airlock.
func (p prisons) stop(ctx context.Context, r airlock.Record) error {
	spec, err := p.spec(r)
	if err != nil {
		return err
	}
	return p.backend(r).Stop(ctx, spec)
}

// wipe removes the workspace of a prison that does not run, and all that the prison has.
func (p prisons) wipe(ctx context.Context, r airlock.Record) error {
	spec, err := p.spec(r)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(spec.Dir); err != nil {
		return nil //nolint:nilerr // there is no prison
	}
	if err := p.backend(r).Wipe(ctx, spec); err != nil {
		return fmt.Errorf("remove workspace %q: %w", spec.Workspace, err)
	}
	return nil
}

// launched returns the state of the launched command, nil if there was none.
func (p prisons) launched(ctx context.Context, r airlock.Record) (*prison.Launched, error) {
	spec, err := p.spec(r)
	if err != nil {
		return nil, err
	}
	return p.backend(r).Launched(ctx, spec)
}

// shown returns what the launched command showed last on its terminal.
func (p prisons) shown(ctx context.Context, r airlock.Record) (io.ReadCloser, error) {
	spec, err := p.spec(r)
	if err != nil {
		return nil, err
	}
	return p.backend(r).Shown(ctx, spec)
}

const (
	// modeTime bounds a command inside that takes an instant.
	modeTime = 10 * time.Second
	// workspaceMode is that of a workspace: open to its owner, the agent, and to nobody else.
	workspaceMode = 0o700
)

// fixWorkspaceMode gives a workspace its mode again, and reports whether it had another one: the agent may have opened it to
// other users of the host, or closed it to itself, without which no command can begin there and no commit come out. Only
// the owner can: root does it for them, anybody else in the prison.
func (p prisons) fixWorkspaceMode(ctx context.Context, r airlock.Record) (changed bool, err error) {
	spec, err := p.spec(r)
	if err != nil {
		return false, err
	}
	info, err := os.Lstat(spec.Workspace)
	if err != nil || !info.IsDir() || info.Mode().Perm() == workspaceMode {
		return false, nil //nolint:nilerr // what is not there is not open
	}
	if os.Geteuid() == 0 {
		err := os.Chmod(spec.Workspace, workspaceMode) // the folder above is the user's: nobody puts a link in its place
		if closed := info.Mode().Perm()&workspaceMode != workspaceMode; err != nil || !closed {
			return true, err
		}
		// The overlay through which a prison sees the folder keeps the mode that was set in it.
	}
	ctx, cancel := context.WithTimeout(ctx, modeTime)
	defer cancel()
	box, err := p.attachAnyway(ctx, r)
	if errors.Is(err, prison.ErrNotRunning) {
		box, err = p.backend(r).Open(ctx, spec)
	}
	if err != nil {
		return true, err
	}
	defer box.Close()
	status, err := box.Exec(ctx, prison.Process{Argv: []string{"chmod", strconv.FormatInt(workspaceMode, 8), prison.Workspace}, Dir: "/"})
	if err == nil && status != 0 {
		err = fmt.Errorf("chmod: exit status %d", status)
	}
	return true, err
}

// setIsolation writes down what a prison gives.
func setIsolation(r *airlock.Record, i prison.Isolation) {
	r.Isolation.Runtime, r.Isolation.Weaker = i.Runtime, nil
	for _, w := range i.Weaker {
		r.Isolation.Weaker = append(r.Isolation.Weaker, airlock.Weakness{Kind: string(w.Kind), Text: w.Text})
	}
}

// isolationOf returns what was written down.
func isolationOf(r airlock.Record) prison.Isolation {
	i := prison.Isolation{Runtime: r.Isolation.Runtime}
	for _, w := range r.Isolation.Weaker {
		i.Weaker = append(i.Weaker, prison.Weakness{Kind: prison.Missing(w.Kind), Text: w.Text})
	}
	return i
}

// Attach connects to the running prison of an airlock.
func (s *Session) Attach(ctx context.Context, r airlock.Record) (prison.Prison, error) {
	return s.prisons().attach(ctx, r)
}

// Launched returns the state of the command that was launched in an airlock, nil if there was none.
func (s *Session) Launched(ctx context.Context, r airlock.Record) (*prison.Launched, error) {
	return s.prisons().launched(ctx, r)
}

// Shown returns what that command showed last on its terminal: bytes of the agent's.
func (s *Session) Shown(ctx context.Context, r airlock.Record) (io.ReadCloser, error) {
	return s.prisons().shown(ctx, r)
}

// IsBackend reports whether a name is that of a backend, or "auto".
func IsBackend(name string) bool { return name == "auto" || backendNamed(name) != nil }
