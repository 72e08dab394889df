package landing

import (
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/request"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// mostAccepted bounds the commits that --accept names.
const mostAccepted = 10_000

func promoteCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "promote", Usage: "land pending commits now",
		UsageText: "git airlock promote [--engine tree|patch] [--upto REV | --from REF | --rescue | --resolve]\n   git airlock promote [--engine tree|patch] [--drop COMMIT]... [--accept RULE[:PATH]]... [COMMIT...]",
		Description: "Lands all commits that nothing holds, also those that wait for a review (airlock.autoLand=false). With --accept or\n" +
			"--drop, commits that wait for a review keep waiting. --accept lets only the named commits pass, or all that the\n" +
			"rule holds now if none is named. --rescue leaves the agent's other worktrees and repositories of its own out, and names\n" +
			"those with changes. --from takes nothing off that main has landed, and no later commit of main takes off what --from landed,\n" +
			"also if both have landed the same change. What main has landed or merged itself leaves the branch when main drops it.\n" +
			"Exit status 3 if a commit is held, or if the agent has replaced a named one.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "upto", Usage: "land pending commits up to `REV` and no further"},
			&cli.StringFlag{Name: "from", Usage: "promote the inner branch or commit `REF` instead of main"},
			&cli.BoolFlag{Name: "rescue", Usage: "first commit the agent's uncommitted changes, as the agent"},
			request.EngineFlag,
			&cli.StringSliceFlag{Name: "accept", Usage: "accept commits that `RULE[:PATH]` holds, and record it in their notes; a PATH that ends in / is a folder"},
			&cli.StringSliceFlag{Name: "drop", Usage: "leave the pending `COMMIT` out; the commits that apply without it land, or wait for their review"},
			&cli.BoolFlag{Name: "resolve", Usage: "start a merge of the first conflicting commit, which you then finish"},
		},
		Action: func(c *cli.Context) error {
			if err := exclusive(c); err != nil {
				return err
			}
			return cmdline.OnAirlock(promoteNow)(c)
		},
	}, cmdline.Takes{Most: mostAccepted})
}

func promoteNow(c *cli.Context, s *session.Session, r airlock.Record) error {
	if err := s.Heal(r); err != nil {
		return err
	}
	if c.Bool("resolve") {
		err := s.ResolveConflict(c.Context, r)
		if held, ok := errors.AsType[*hold.Error](err); ok {
			return &environment.Refusal{Text: held.Error(), Next: held.Hold.Next}
		}
		return err
	}
	wanted, err := promotionOf(c, s)
	if err != nil {
		return err
	}
	if wanted.Rescue && !s.Dry {
		cmdline.Checkpoints(s, r).Automatic(c.Context, "before promote --rescue", nil)
	}
	err = s.Promote(c.Context, r, wanted)
	if errors.Is(err, gitops.ErrNoCommit) {
		return ui.Usagef("--from: %s", err)
	}
	return err
}

// exclusive reports options of promote that exclude each other, as in its synopsis.
func exclusive(c *cli.Context) error {
	var given []string
	for _, name := range []string{"upto", "from", "rescue", "resolve"} {
		if c.IsSet(name) {
			given = append(given, name)
		}
	}
	switch {
	case len(given) > 1:
		return ui.Usagef("promote: --%s and --%s exclude each other", strings.Join(given[:len(given)-1], ", --"), given[len(given)-1])
	case c.IsSet("resolve") && (c.IsSet("accept") || c.IsSet("drop")):
		return ui.Usagef("promote: --resolve and --accept or --drop exclude each other")
	case len(cmdline.Words(c)) > 0 && !c.IsSet("accept"):
		return ui.Usagef("promote: unexpected argument %q; only --accept takes commits", cmdline.Words(c)[0])
	}
	return nil
}

func promotionOf(c *cli.Context, s *session.Session) (p session.Promotion, err error) {
	p = session.Promotion{Rescue: c.Bool("rescue"), Commits: cmdline.Words(c), Drop: c.StringSlice("drop"),
		Options: promote.Options{From: c.String("from"), UpTo: c.String("upto")}}
	for _, text := range c.StringSlice("accept") {
		w, err := policy.ParseAcceptance(text)
		if err != nil {
			return p, ui.Usagef("--accept: %s", err)
		}
		p.Accept = append(p.Accept, w)
	}
	// A decision on one commit is not a review of the others.
	p.Options.Land = len(p.Accept)+len(p.Drop) == 0 || p.Options.UpTo != ""
	if _, err := s.Repo.Commit(c.Context, p.Options.UpTo); err != nil && p.Options.UpTo != "" && !history.Digits(p.Options.UpTo) {
		return p, ui.Usagef("--upto: %s", err)
	}
	p.Options.Engine, err = request.Engine(c)
	return p, err
}
