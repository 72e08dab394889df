package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func promoteCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "promote", Usage: "land what can land, now",
		UsageText:   "git airlock promote",
		Description: "Lands what waits for a review, too. Exit status 3 if something is held.\n\n" + exitStatusHelp,
		Action: func(c *cli.Context) error {
			a, err := open(c)
			if err != nil {
				return err
			}
			r, err := a.here(c.Context)
			if err != nil {
				return err
			}
			if err := a.heal(c.Context, r); err != nil {
				return err
			}
			return a.promote(c.Context, r)
		},
	}, inside, false)
}

// promote makes cycles until nothing more can land. A [refusal] says what is held.
func (a *app) promote(ctx context.Context, r airlock.Record) error {
	engine := a.engine(r)
	defer engine.Close()
	if a.dry {
		s, err := engine.State(ctx)
		say(a.message, "would promote %s to %s", count(s.Pending, "commit"), gitops.Escape(r.BranchName()))
		return err
	}
	outcome, err := engine.Drain(ctx, promote.Options{Land: true})
	if err != nil {
		return err
	}
	return a.tell(r, outcome)
}

// tell says what landed; a [refusal] says what did not.
func (a *app) tell(r airlock.Record, o promote.Outcome) error {
	branch := gitops.Escape(r.BranchName())
	if o.Landed > 0 {
		say(a.message, "landed %s on %s", count(o.Landed, "commit"), branch)
	}
	if o.FirstLanding {
		fmt.Fprintln(a.message, "hint: git log --notes=airlock shows where landed commits came from")
	}
	if len(o.Holds) == 0 && o.Pending == 0 {
		if o.Landed == 0 {
			say(a.message, "nothing is left to land on %s", branch)
		}
		return nil
	}
	return held(o)
}

// held words an outcome that holds.
func held(o promote.Outcome) error {
	if len(o.Holds) == 0 {
		return &refusal{count(o.Pending, "commit") + " wait while another git command is at work", []string{"git airlock promote"}}
	}
	h := o.Holds[0]
	text := fmt.Sprintf("held (%s): %s", h.Reason, h.Message)
	if o.Pending > 0 {
		text = fmt.Sprintf("%s pending, %s", count(o.Pending, "commit"), text)
	}
	return &refusal{text, h.Next}
}
