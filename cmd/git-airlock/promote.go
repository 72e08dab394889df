package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

func promoteCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "promote", Usage: "land what can land, now",
		UsageText:   "git airlock promote [--engine tree|patch] [--upto REV | --from REF | --rescue | --resolve]\n   git airlock promote [--engine tree|patch] [--accept RULE[:PATH]]... [--drop COMMIT]...",
		Description: "Lands what waits for a review, too. Exit status 3 if something is held.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "upto", Usage: "land pending commits up to `REV` and no further"},
			&cli.StringFlag{Name: "from", Usage: "promote the inner branch or commit `REF` in the place of main"},
			&cli.BoolFlag{Name: "rescue", Usage: "first commit, as the agent, what it has not committed"},
			engineFlag,
			&cli.StringSliceFlag{Name: "accept", Usage: "let the commits pass that `RULE[:PATH]` holds now, and say so in their notes; a path that ends in / is a folder"},
			&cli.StringSliceFlag{Name: "drop", Usage: "leave the pending `COMMIT` out, and land what does not need it"},
			&cli.BoolFlag{Name: "resolve", Usage: "start a merge of the first commit that conflicts, for you to finish"},
		},
		Action: onAirlock(func(c *cli.Context, a *app, r airlock.Record) error {
			if err := a.heal(c.Context, r); err != nil {
				return err
			}
			if c.Bool("resolve") {
				return a.resolve(c.Context, r)
			}
			before, err := ledger.TotalLanded(a.store.Dir(r.ID))
			if err != nil {
				return err
			}
			rescued := ""
			if c.Bool("rescue") {
				if rescued, err = a.rescue(c.Context, r); err != nil {
					return err
				}
			}
			if err := a.decide(c.Context, r, c.StringSlice("accept"), c.StringSlice("drop")); err != nil {
				return err
			}
			options := promote.Options{Land: true, From: c.String("from"), UpTo: c.String("upto")}
			if _, err := a.repo.Commit(c.Context, options.UpTo); err != nil && options.UpTo != "" && !history.Digits(options.UpTo) {
				return ui.Usagef("--upto: %s", err)
			}
			engine, err := engineOption(c)
			if err != nil {
				return err
			}
			options.Engine = engine
			return a.besides(c.Context, r, rescued, a.promote(c.Context, r, options, before))
		}),
	}, inside, false)
}

// promote makes cycles until nothing more can land, and says how many have landed since there were so many before: the daemon may
// be quicker. A [refusal] says what is held.
func (a *app) promote(ctx context.Context, r airlock.Record, options promote.Options, before int) error {
	engine := a.engine(r)
	defer engine.Close()
	if a.dry {
		s, err := engine.State(ctx)
		ui.Say(a.message, "would promote %s to %s", ui.Count(s.Pending, "commit"), gitops.Escape(r.BranchName()))
		return err
	}
	outcome, err := drain(ctx, engine, options)
	if errors.Is(err, gitops.ErrNoCommit) {
		return ui.Usagef("--from: %s", err)
	}
	if err != nil {
		return noneSuch(err)
	}
	return a.tell(r, outcome, before)
}

// drain promotes what can land, and shows on a terminal how far that is.
func drain(ctx context.Context, engine *promote.Engine, options promote.Options) (ledger.Outcome, error) {
	line := ui.NewProgress("looking for commits")
	defer line.Close()
	engine.Progress = line.Step
	return engine.Drain(ctx, options)
}

// tell says what has landed since there were so many before; a [refusal] says what has not.
func (a *app) tell(r airlock.Record, o ledger.Outcome, before int) error {
	branch, landed := gitops.Escape(r.BranchName()), o.Total-before
	if landed > 0 {
		ui.Say(a.message, "landed %s on %s", ui.Count(landed, "commit"), branch)
	}
	a.showNotes(r, o.Total)
	if len(o.Holds) == 0 && o.Pending == 0 {
		if landed <= 0 {
			ui.Say(a.message, "nothing is left to land on %s", branch)
		}
		return nil
	}
	return held(o)
}

// showNotes tells the user once where commits came from, after the first of an airlock has landed.
func (a *app) showNotes(r airlock.Record, landed int) {
	if landed > 0 && a.store.Tell(r.ID) {
		ui.Hint(a.message, "git log --notes=airlock  # shows where landed commits came from")
	}
}

// held words an outcome that holds.
func held(o ledger.Outcome) error {
	if len(o.Holds) == 0 {
		return &refusal{ui.Count(o.Pending, "commit") + " still pending", []string{"git airlock promote"}}
	}
	h := o.Holds[0]
	text := fmt.Sprintf("held (%s): %s", h.Reason, h.Message)
	if o.Pending > 0 {
		text = fmt.Sprintf("%s pending, %s", ui.Count(o.Pending, "commit"), text)
	}
	return &refusal{text, h.Next}
}

// resolve hands the user the conflict that is held. They finish it as they finish any merge.
func (a *app) resolve(ctx context.Context, r airlock.Record) error {
	if a.dry {
		ui.Say(a.message, "would start a merge of the first commit that conflicts into %s", gitops.Escape(r.BranchName()))
		return nil
	}
	engine := a.engine(r)
	defer engine.Close()
	if _, err := drain(ctx, engine, promote.Options{}); err != nil {
		return err
	}
	commit, err := engine.Resolve(ctx)
	if errors.Is(err, promote.ErrNoConflict) {
		ui.Say(a.message, "%s", err)
		return nil
	}
	if err != nil {
		return err
	}
	return &refusal{fmt.Sprintf("merging %.12s into %s; resolve what conflicts and commit, then landing goes on", commit, gitops.Escape(r.BranchName())),
		[]string{"git status", "git commit", "git merge --abort"}}
}

// rescueScript commits everything, with no hook of the workspace's, and prints where the commit is.
var rescueScript = []string{"sh", "-c", `git -c core.hooksPath=/dev/null add -A >&2 &&
if ! git diff --cached --quiet; then
git -c core.hooksPath=/dev/null commit -q --no-verify -m 'Uncommitted work' >&2 && { git symbolic-ref -q HEAD || echo HEAD; }
fi`}

// maxSaid bounds what is kept of what a short command inside says.
const maxSaid = 4096

// rescueTime bounds the commit that git makes in the workspace, where it may meet anything.
const rescueTime = time.Minute

// rescue makes one commit of what the agent has not committed, and returns the ref that it is on, by the workspace's word.
func (a *app) rescue(ctx context.Context, r airlock.Record) (ref string, err error) {
	if a.dry {
		ui.Say(a.message, "would commit what is not committed in the workspace")
		return "", nil
	}
	box, err := a.attach(ctx, r)
	if err != nil {
		return "", err
	}
	defer box.Close()
	said, where := prison.Capped{Max: maxSaid}, prison.Capped{Max: maxSaid}
	bounded, cancel := context.WithTimeout(ctx, rescueTime)
	defer cancel()
	status, err := box.Exec(bounded, prison.Process{Argv: rescueScript, Stdout: &where, Stderr: &said})
	if errors.Is(bounded.Err(), context.DeadlineExceeded) {
		return "", fmt.Errorf("commit what is not committed: git in the workspace did not end within %s", rescueTime)
	}
	if err != nil {
		return "", err
	}
	if status != 0 {
		return "", fmt.Errorf("commit what is not committed: %s", gitops.Escape(said.String()))
	}
	return strings.TrimSpace(where.String()), nil
}
