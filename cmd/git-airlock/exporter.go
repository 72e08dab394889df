package main

import (
	"context"
	"os"
	"path"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// exporter is a second prison beside the agent's, with the workspace read-only: git runs there as the
// phantom, obeying an inner repository that can do nothing with it.
type exporter struct {
	gitops.Workspace
	box  prison.Prison
	home func(context.Context) (prison.Prison, error) // opens a prison whose workspace is the agent's home; nil if the host has none
}

func (a *app) openExporter(ctx context.Context, r airlock.Record) (promote.Exporter, error) {
	spec, err := a.spec(r)
	if err != nil {
		return nil, err
	}
	box, err := a.openLook(ctx, r, spec)
	if err != nil {
		return nil, err
	}
	x := exporter{workspaceIn(box), box, nil}
	if home := native.Home(spec); a.backend(r).Name() == "native" && isDir(home) {
		spec.Workspace = home
		x.home = func(ctx context.Context) (prison.Prison, error) { return a.openLook(ctx, r, spec) }
	}
	return x, nil
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// Usage measures the workspace and the agent's home, which may be on another disk: what it may write to that outlives it.
func (x exporter) Usage(ctx context.Context) (gitops.Usage, error) {
	u, err := x.Workspace.Usage(ctx)
	if err != nil || x.home == nil {
		return u, err
	}
	box, err := x.home(ctx)
	if err != nil {
		return u, err
	}
	defer box.Close()
	home, err := workspaceIn(box).Usage(ctx)
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
