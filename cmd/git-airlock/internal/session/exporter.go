package session

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
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
