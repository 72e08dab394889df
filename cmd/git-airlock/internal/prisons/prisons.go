// Package prisons manages the prisons of a repository's airlocks: the backend of an airlock, the specification of its prison, and
// the exporter's prisons, in which git reads the workspace.
package prisons

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	_ "github.com/git-airlock/git-airlock/prison/egress" // the other end of a native prison's network
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
)

// containers is the docker backend, with one connection for all callers.
var containers = docker.New("")

// Containers returns the docker backend.
func Containers() *docker.Backend { return containers }

// Backends returns all backends. The first is the one that "auto" prefers without an image.
func Backends() []prison.Backend { return []prison.Backend{native.New(), containers} }

// Plain returns the backend that makes prisons without images.
func Plain() prison.Backend { return native.New() }

// Named returns the backend with a name, nil if there is none.
func Named(name string) prison.Backend {
	for _, b := range Backends() {
		if b.Name() == name {
			return b
		}
	}
	return nil
}

// Prisons are the prisons of a repository's airlocks.
type Prisons struct {
	Repo   *gitops.Repository
	Store  airlock.Store
	Config gitops.Config
	Report environment.Reporter
}

// Backend returns the backend of an airlock.
func (p Prisons) Backend(r airlock.Record) prison.Backend {
	return cmp.Or(Named(r.Backend), Plain())
}

// Traits returns the properties of an airlock's prison.
func (p Prisons) Traits(r airlock.Record) prison.Traits {
	return p.Backend(r).Traits(cmp.Or(r.Runtime, r.Isolation.Runtime))
}

// Spec returns the specification of an airlock's prison, without the values of its variables, which the caller of a start adds. If the
// record has an unknown network, the specification has none. StartSpec reports it then.
func (p Prisons) Spec(r airlock.Record) prison.Spec {
	mode, _ := prison.ParseNetwork(r.Isolation.Network)
	var tools []prison.Tool
	for _, t := range r.Tools {
		if _, err := os.Stat(t.Path); err == nil || !t.Optional {
			tools = append(tools, prison.Tool(t))
		}
	}
	dir := filepath.Join(p.Store.Dir(r.ID), "prison")
	sources := func(ctx context.Context) []secret.Secret {
		return network.Sources(ctx, p.Repo, p.Config, r.Settings, dir)
	}
	return prison.Spec{
		ID: r.ID, Dir: dir, Workspace: p.Store.Workspace(r), Sources: sources,
		UID: r.Phantom.UID, GID: r.Phantom.GID, User: r.Ghost.Login(), Hostname: r.Ghost.Hostname(),
		Name: r.Workspace + "-" + p.Repo.Name(), Image: r.Image, Runtime: r.Runtime,
		Tools: tools, Root: r.Rootfs, Network: mode, Limits: prison.Limits(r.Isolation.Limits),
	}
}

// Quarantine returns the folder of an airlock's quarantine.
func (p Prisons) Quarantine(r airlock.Record) string { return promote.QuarantineDir(p.Store.Dir(r.ID)) }

// Attach connects to the running prison of an airlock. It fails if the workspace is gone.
func (p Prisons) Attach(ctx context.Context, r airlock.Record) (prison.Prison, error) {
	if p.Store.WorkspaceGone(r) {
		return nil, fmt.Errorf("the workspace %s is gone: %w", r.Workspace, prison.ErrNotRunning)
	}
	return p.attachAnyway(ctx, r)
}

func (p Prisons) attachAnyway(ctx context.Context, r airlock.Record) (prison.Prison, error) {
	return p.Backend(r).Attach(ctx, p.Spec(r))
}

// Runs reports whether the prison of an airlock answers, and has a workspace. This is how a command notices that a prison was killed;
// the next start, run or visit then starts it again, and nothing else does.
func (p Prisons) Runs(ctx context.Context, r airlock.Record) (bool, error) {
	if p.Store.WorkspaceGone(r) {
		return false, nil
	}
	return p.Answers(ctx, r)
}

// Answers reports whether the prison of an airlock answers.
func (p Prisons) Answers(ctx context.Context, r airlock.Record) (bool, error) {
	box, err := p.attachAnyway(ctx, r)
	if err != nil {
		return false, gitops.Unless(err, prison.ErrNotRunning)
	}
	return true, box.Close()
}

// alive reports whether the prison of an airlock runs, or may run: it does not answer before ctx ends, or its engine does not.
func (p Prisons) alive(ctx context.Context, r airlock.Record) bool {
	answers, err := p.Answers(ctx, r)
	return answers || err != nil
}

func (p Prisons) stop(ctx context.Context, r airlock.Record) error {
	return p.Backend(r).Stop(ctx, p.Spec(r))
}

// Mend replaces processes on the host that the prison of an airlock has lost, until ctx ends, and calls mended each time.
func (p Prisons) Mend(ctx context.Context, r airlock.Record, mended func()) {
	if mender, ok := p.Backend(r).(prison.Mender); ok {
		mender.Mend(ctx, p.Spec(r), mended)
	}
}

// Supply hands values of credentials to the running network of an airlock.
func (p Prisons) Supply(ctx context.Context, r airlock.Record, keys []secret.Secret) error {
	mender, ok := p.Backend(r).(prison.Mender)
	if !ok {
		return nil
	}
	spec := p.Spec(r)
	spec.Secrets = keys
	return mender.Supply(ctx, spec)
}

// Wipe removes the workspace and all other files of a stopped prison.
func (p Prisons) Wipe(ctx context.Context, r airlock.Record) error {
	_, end := p.Report.Begin("removing the workspace")
	defer end()
	spec := p.Spec(r)
	if _, err := os.Lstat(spec.Dir); err != nil {
		return nil //nolint:nilerr // there is no prison
	}
	if err := p.Backend(r).Wipe(ctx, spec); err != nil {
		return fmt.Errorf("remove workspace %q: %w", spec.Workspace, err)
	}
	return nil
}

// Halt ends daemon and prison. If ctx ends, it stops waiting for the daemon's cycle, but still ends both.
func (p Prisons) Halt(ctx context.Context, r airlock.Record) error {
	_, end := p.Report.Begin("stopping")
	defer end()
	if err := daemon.Stop(ctx, p.Store, r.ID); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if err := p.stop(ctx, r); err != nil {
		return err
	}
	if _, err := p.fixWorkspaceMode(ctx, r); err != nil {
		p.Report.Say("the workspace %s is open to other users of this host, or closed to the agent: %s", r.Workspace, err)
	}
	return nil
}

// removalTime bounds the wait for a program that is removing the repository.
const removalTime = 10 * time.Second

// SweepOrphaned ends the prison of an airlock whose repository was removed. After that nothing has a record of such a prison. It first
// waits until the workspace is gone, because a program that removes the repository may remove the workspace after the record.
func (p Prisons) SweepOrphaned(ctx context.Context, r airlock.Record) error {
	sweeper, ok := p.Backend(r).(prison.Sweeper)
	if !ok {
		return nil
	}
	if _, err := p.Store.Load(r.ID); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, removalTime)
	defer cancel()
	for ; soon.Err() == nil; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Lstat(p.Store.Workspace(r)); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return sweeper.SweepOrphaned(context.WithoutCancel(ctx))
}

// Erase removes all parts of an airlock. It can be repeated after an interruption.
func (p Prisons) Erase(ctx context.Context, r airlock.Record) error {
	if _, err := os.Lstat(p.Store.Dir(r.ID)); errors.Is(err, fs.ErrNotExist) {
		return nil // the host state is created first and removed last
	}
	if err := p.Halt(ctx, r); err != nil {
		return err
	}
	if err := daemon.EndCheck(ctx, p.Store, r.ID); err != nil {
		return err
	}
	if err := errors.Join(p.wipeCheck(ctx, r.ID), p.Wipe(ctx, r)); err != nil {
		return err
	}
	err := p.Store.Remove(ctx, r)
	if errors.Is(err, context.Canceled) { // the terminal's ^C also ended a git process
		err = p.Store.Remove(ctx, r)
	}
	return err
}

// Launched returns the state of the launched command, nil if there was none.
func (p Prisons) Launched(ctx context.Context, r airlock.Record) (*prison.Launched, error) {
	return p.Backend(r).Launched(ctx, p.Spec(r))
}

// Shown returns the latest output of the launched command.
func (p Prisons) Shown(ctx context.Context, r airlock.Record) (io.ReadCloser, error) {
	return p.Backend(r).Shown(ctx, p.Spec(r))
}

const (
	// modeTime bounds a short command inside.
	modeTime = 10 * time.Second
	// workspaceMode is the mode of a workspace. Only its owner, the agent, has access.
	workspaceMode = 0o700
)

// fixWorkspaceMode restores the mode of a workspace, and reports whether it was changed. The agent may have given other users of
// the host access, or removed its own access, so that no command can start there and no commit can come out. Only the owner and
// root can restore the mode. For an ordinary user it is done in the prison.
func (p Prisons) fixWorkspaceMode(ctx context.Context, r airlock.Record) (changed bool, err error) {
	spec := p.Spec(r)
	info, err := os.Lstat(spec.Workspace)
	if err != nil || !info.IsDir() || info.Mode().Perm() == workspaceMode {
		return false, nil //nolint:nilerr // what is not there is not open
	}
	if os.Geteuid() == 0 {
		err := os.Chmod(spec.Workspace, workspaceMode) // the parent folder belongs to the user, so the agent cannot replace the workspace by a link
		if closed := info.Mode().Perm()&workspaceMode != workspaceMode; err != nil || !closed {
			return true, err
		}
		// A prison with an overlay keeps the mode that was set in the overlay.
	}
	ctx, cancel := context.WithTimeout(ctx, modeTime)
	defer cancel()
	box, err := p.attachAnyway(ctx, r)
	if errors.Is(err, prison.ErrNotRunning) {
		box, err = p.Backend(r).Open(ctx, spec)
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

// SetIsolation writes a started prison's isolation into the record, and reports the image's variables that are empty inside.
func (p Prisons) SetIsolation(r *airlock.Record, i prison.Isolation) {
	if len(i.Emptied) > 0 {
		p.Report.Say("not taken from the image: %s; the network uses a proxy only if %s names it", gitops.Text(strings.Join(i.Emptied, ", ")), network.UpstreamKey)
	}
	r.Isolation.Runtime, r.Isolation.Weaker = i.Runtime, nil
	for _, w := range i.Weaker {
		r.Isolation.Weaker = append(r.Isolation.Weaker, airlock.Weakness{Kind: string(w.Kind), Text: w.Text})
	}
}

func isolationOf(r airlock.Record) prison.Isolation {
	i := prison.Isolation{Runtime: r.Isolation.Runtime}
	for _, w := range r.Isolation.Weaker {
		i.Weaker = append(i.Weaker, prison.Weakness{Kind: prison.Missing(w.Kind), Text: w.Text})
	}
	return i
}

// IsBackend reports whether a name is a backend's name or "auto".
func IsBackend(name string) bool { return name == "auto" || Named(name) != nil }
