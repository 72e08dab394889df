package main

import (
	"context"
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
	box prison.Prison
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
	return exporter{workspaceIn(box), box}, nil
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
