package session

import (
	"context"
	"errors"
	"fmt"
	"log"
	"path"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/watch"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// exporter is a second prison beside the agent's, with the workspace read-only: git runs there as the
// phantom, obeying an inner repository that can do nothing with it.
type exporter struct {
	gitops.Workspace
	box  prison.Prison
	home func(context.Context) (prison.Prison, error) // opens a prison whose workspace is the agent's home
}

func (p prisons) openExporter(ctx context.Context, r airlock.Record) (promote.Exporter, error) {
	spec, err := p.exporterSpec(r)
	if err != nil {
		return nil, err
	}
	box, err := p.openReadOnly(ctx, r, spec)
	if err != nil {
		return nil, err
	}
	home := func(ctx context.Context) (prison.Prison, error) { return p.backend(r).OpenHome(ctx, spec) }
	return exporter{workspaceIn(box), box, home}, nil
}

// exporterSpec describes the exporter's prisons.
func (p prisons) exporterSpec(r airlock.Record) (prison.Spec, error) {
	spec, err := p.spec(r)
	if err != nil {
		return spec, err
	}
	spec.ReadOnly, spec.Env, spec.Network = true, nil, prison.NetworkNone
	spec.Limits.Memory, err = promote.ReadSize(p.config.With(r.Settings), "airlock.limit.memory", gitops.DefaultLimits.Memory)
	return spec, err
}

// openReadOnly opens a prison for the exporter: without an image where it may be, since that is opened in a tenth of a container's
// time and needs no engine. Git obeys the agent there: an agent whose calls end in a kernel that is not this machine's must
// not get at this one so.
func (p prisons) openReadOnly(ctx context.Context, r airlock.Record, spec prison.Spec) (prison.Prison, error) {
	own, traits := p.backend(r), p.traits(r)
	if !traits.HostKernel {
		return own.Open(ctx, spec)
	}
	without := spec
	without.Image, without.Runtime = "", ""
	box, err := plain().Open(ctx, without)
	if err == nil || !traits.Images || ctx.Err() != nil {
		return box, err
	}
	inside, ownErr := own.Open(ctx, spec)
	if ownErr != nil {
		return nil, errors.Join(ownErr, err)
	}
	return inside, nil
}

// Usage measures the workspace and the agent's home, which may be on another disk: what it may write to that outlives it.
func (x exporter) Usage(ctx context.Context) (gitops.Usage, error) {
	u, err := x.Workspace.Usage(ctx)
	if err != nil {
		return u, err
	}
	box, err := x.home(ctx)
	if errors.Is(err, prison.ErrNoHome) {
		return u, nil
	}
	var home gitops.Usage // that is not whole
	if err == nil {
		defer box.Close()
		home, err = workspaceIn(box).Usage(ctx)
	}
	if err != nil {
		err = fmt.Errorf("in the agent's home: %w", err)
	}
	return u.With(home), err
}

// watched are the places that change when an inner ref does.
var watched = []string{".git", ".git/HEAD", ".git/packed-refs", ".git/refs", ".git/refs/heads", ".git/refs/heads/main", ".git/reftable"}

func (x exporter) Watch(ctx context.Context) (<-chan struct{}, error) {
	paths := make([]string, len(watched))
	for i, p := range watched {
		paths[i] = path.Join(prison.Workspace, p)
	}
	return x.box.Watch(ctx, paths)
}

func (x exporter) Close() error { return x.box.Close() }

// workspaceIn lets gitops run git inside a prison.
func workspaceIn(box prison.Prison) gitops.Workspace {
	return gitops.Workspace{Dir: prison.Workspace, Run: func(ctx context.Context, p gitops.Process) (int, error) {
		return box.Exec(ctx, prison.Process{Argv: p.Argv, Env: p.Env, Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr})
	}}
}

// daemonConfig returns what the daemon of an airlock runs with: an engine, and a guard of its prison beside it.
func (s *Session) daemonConfig(r airlock.Record, logger *log.Logger) daemon.Config {
	e := s.Engine(r)
	g := watch.New(s.guarded(r), logger)
	e.Guard = diskGuard{g}
	return daemon.Config{Engine: e, Log: logger, Guard: g.Run, News: g.News()}
}

// guarded returns what a guard needs to know of an airlock's prison.
func (s *Session) guarded(r airlock.Record) watch.Prison {
	dir, prisons := s.Store.Dir(r.ID), s.prisons()
	p := watch.Prison{
		Workspace: s.Store.Workspace(r),
		Measure:   func(ctx context.Context) (watch.Usage, error) { return prisons.measure(ctx, r) },
		Exported:  func() int64 { return gitops.OpenQuarantine(promote.QuarantineDir(dir), r.Format).Size() },
		Halt:      func(ctx context.Context) error { return prisons.stop(ctx, r) },
		Close:     func(ctx context.Context) (bool, error) { return prisons.fixWorkspaceMode(ctx, r) },
	}
	if spec, err := prisons.spec(r); err == nil {
		p.Others = append(p.Others, watch.Folder{Path: prisons.backend(r).HomeDisk(spec), Of: "the agent's home"})
	}
	p.Others = append(p.Others, watch.Folder{Path: dir, Of: "the repository"})
	return p
}

// measure measures workspace and home, with an exporter of its own: another one may be busy for as long as the agent
// likes.
func (p prisons) measure(ctx context.Context, r airlock.Record) (watch.Usage, error) {
	exporter, err := p.openExporter(ctx, r)
	if err != nil {
		return watch.Usage{}, err
	}
	defer exporter.Close()
	u, err := exporter.Usage(ctx)
	return watch.Usage{Bytes: u.Bytes, Inodes: u.Inodes, Beside: u.Beside, Whole: u.Whole, Took: u.Took}, err
}

// diskGuard words what a guard found as a hold.
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
	return &ledger.Hold{Reason: ledger.WorkspaceFull, Message: full.Message, Next: []string{next, "git airlock start"}}
}
