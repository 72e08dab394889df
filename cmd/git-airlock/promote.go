package main

import (
	"errors"

	"github.com/git-airlock/git-airlock/promote/history"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/policy"
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
		Action: onAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			if err := s.Heal(c.Context, r); err != nil {
				return err
			}
			if c.Bool("resolve") {
				return s.ResolveConflict(c.Context, r)
			}
			wanted, err := promotionOf(c, s)
			if err != nil {
				return err
			}
			err = s.Promote(c.Context, r, wanted)
			if errors.Is(err, gitops.ErrNoCommit) {
				return ui.Usagef("--from: %s", err)
			}
			return err
		}),
	}, inside, false)
}

// promotionOf reads the options.
func promotionOf(c *cli.Context, s *session.Session) (p session.Promotion, err error) {
	p = session.Promotion{Rescue: c.Bool("rescue"), Drop: c.StringSlice("drop"),
		Options: promote.Options{Land: true, From: c.String("from"), UpTo: c.String("upto")}}
	for _, text := range c.StringSlice("accept") {
		w, err := policy.ParseAcceptance(text)
		if err != nil {
			return p, ui.Usagef("--accept: %s", err)
		}
		p.Accept = append(p.Accept, w)
	}
	if _, err := s.Repo.Commit(c.Context, p.Options.UpTo); err != nil && p.Options.UpTo != "" && !history.Digits(p.Options.UpTo) {
		return p, ui.Usagef("--upto: %s", err)
	}
	p.Options.Engine, err = engineOption(c)
	return p, err
}
