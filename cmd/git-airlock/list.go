package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func listCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "list", Usage: "list every airlock of this repository's worktrees",
		UsageText:   "git airlock list [--json]",
		Description: "git-airlock(1) explains the fields that --json prints.",
		Flags:       []cli.Flag{jsonFlag},
		Action: inRepository(func(c *cli.Context, a *app) error {
			documents, err := a.list(c.Context)
			if err != nil {
				return err
			}
			if c.Bool(jsonFlag.Name) {
				return ui.PrintJSON(a.out, map[string]any{"version": ui.DocumentVersion, "airlocks": documents})
			}
			return a.show(c.Context, "list", true, func(out io.Writer, p ui.Paint) error { return printList(out, p, documents) })
		}),
	}, inside, false)
}

func printList(out io.Writer, p ui.Paint, documents []ui.Document) error {
	for _, d := range documents {
		hold := ""
		if d.Hold != nil {
			hold = ", " + p.Red("held: "+d.Hold.Reason)
		}
		_, err := fmt.Fprintf(out, "%s  %-8s %s: %d landed, %d pending%s\n",
			p.Yellow(d.ID), d.State, p.Bold(gitops.Escape(d.Branch)), d.Landed, d.Pending, hold)
		if err != nil {
			return err
		}
	}
	return nil
}

// list looks at every airlock, each from its own worktree.
func (a *app) list(ctx context.Context) ([]ui.Document, error) {
	records, err := a.store.List()
	if err != nil {
		return nil, err
	}
	worktrees, err := a.worktrees(ctx, records)
	if err != nil {
		return nil, err
	}
	documents := []ui.Document{}
	for _, r := range records {
		if r.Phase == airlock.Starting || r.Phase == airlock.Clearing {
			continue
		}
		there, ok := worktrees[r.Worktree]
		if !ok {
			there = a
			if err := a.showLost(ctx, &r); err != nil {
				return nil, err
			}
		}
		look := there.document
		if !ok {
			look = there.documentNow // seen as stopped, whatever is written
		}
		d, err := look(ctx, r)
		if errors.Is(err, errCleared) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", r.ID, err)
		}
		if !ok {
			d.State = "broken"
		}
		documents = append(documents, d)
	}
	return documents, nil
}

// worktrees opens the repository's worktrees, by their ids, those too that were moved without git knowing.
func (a *app) worktrees(ctx context.Context, records []airlock.Record) (map[string]*app, error) {
	paths, err := a.repo.Worktrees(ctx)
	if err != nil {
		return nil, err
	}
	apps := map[string]*app{a.repo.WorktreeID(): a} // git need not list it: GIT_WORK_TREE can name any folder
	for _, r := range records {
		paths = append(paths, r.Top)
	}
	for _, path := range paths {
		repo, err := gitops.Open(ctx, path)
		if err != nil || repo.CommonDir != a.repo.CommonDir || apps[repo.WorktreeID()] != nil {
			continue // not there, or not ours any more
		}
		if a.dry {
			repo.DryRun()
		}
		there := *a
		there.repo, there.store = repo, airlock.Open(repo)
		apps[repo.WorktreeID()] = &there
	}
	return apps, nil
}
