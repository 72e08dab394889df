package landing

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/inbound"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/incoming"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/snapshot/scan"
	"github.com/git-airlock/git-airlock/words"
)

func syncCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "sync", Usage: "bring your newer commits to the agent",
		UsageText: "git airlock sync [--wait] [--allow-secrets]",
		Description: "Lands what can land, and then gives the agent the files of your branch as one commit of an invented colleague on top of\n" +
			"its main. No message, name or history of yours goes in, and no file of airlock.exclude. What the agent commits next lands with\n" +
			"exactly its tree again. Changes of commits that you left out are taken out of the agent's files. Uncommitted changes of other\n" +
			"files stay as they are. If the agent has staged changes or uncommitted ones of the same files, or is in the middle of a merge or\n" +
			"rebase, the daemon brings the files when that is over. Exit status 3, and nothing changes, if commits of the agent wait, if\n" +
			"secrets would come in, or if the airlock is stopped and work of the agent is in the way.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "wait", Usage: "wait until that is over, and print what came"},
			&cli.BoolFlag{Name: inbound.AllowSecretsFlag, Usage: "bring files even if they contain secrets"},
		},
		Action: cmdline.OnAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			allow, err := s.Config.With(r.Settings).Bool("airlock.allowSecrets", false)
			if err != nil {
				return err
			}
			allow = allow || c.Bool(inbound.AllowSecretsFlag)
			exclude, err := inbound.Excluded(c.Context, s.Repo, s.Config, r.Settings)
			if err != nil {
				return err
			}
			if err := s.Heal(r); err != nil {
				return err
			}
			engine := s.Engine(r)
			defer engine.Close()
			request := inbound.Request{Prisons: s.Prisons(), Engine: engine, Record: r, Exclude: exclude,
				Screen: func(found scan.Report) error { return screen(s, found, allow) }}
			switch {
			case c.Bool("wait"):
				request.Wait = func(why error) { s.Report.Say("%s; waiting until that is over", why) }
			case r.Phase == airlock.Running:
				request.Later = &ledger.Wanted{Secrets: allow}
			}
			change, err := inbound.Sync(c.Context, request)
			if errors.Is(err, incoming.ErrNothing) {
				s.Report.Say("%s: nothing to bring", err)
				return nil
			}
			if later, ok := errors.AsType[*inbound.Postponed](err); ok {
				s.Report.Say("%s", later)
				return nil
			}
			if err != nil {
				return err
			}
			brought(s, r, change)
			return nil
		}),
	}, cmdline.Takes{})
}

// screen prints the secrets of severity high that the agent would get, and refuses them unless they are allowed.
func screen(s *session.Session, found scan.Report, allow bool) error {
	var refused *environment.Refusal
	if !errors.As(inbound.RefuseSecrets(found), &refused) {
		return nil
	}
	for _, f := range found.Findings {
		if f.Severity == scan.High && f.Allowed == "" {
			s.Report.Say("%s: %s: %s", inbound.PlaceOfFinding(f), f.Rule, gitops.Text(f.Reason))
		}
	}
	if allow {
		return nil
	}
	refused.Text = "the agent would get secrets: " + words.Count(found.Count(scan.High), "finding") + " of severity high; nothing was changed"
	refused.Next[len(refused.Next)-1] = "git airlock sync --" + inbound.AllowSecretsFlag
	return refused
}

// brought reports what the agent has got, or would get.
func brought(s *session.Session, r airlock.Record, c *incoming.Change) {
	if s.Dry {
		s.Report.Say("would bring %s on %s to the agent", origins(c), r.BranchName())
		return
	}
	from := "" // the agent may have lost what it had
	if c.Commits+c.Lines > 0 {
		from = ", from " + origins(c) + " on " + r.BranchName().String()
	}
	s.Report.Say("brought to the agent as one commit: %s%s", words.Count(len(c.Paths), "path"), from)
	if c.Left > 0 {
		s.Report.Say("the agent's files lose the changes of %s that you left out", words.Count(c.Left, "commit"))
	}
}

// origins counts the commits that the agent gets, by where they come from.
func origins(c *incoming.Change) string {
	yours, lines := words.Count(c.Commits, "commit")+" of yours", words.Count(c.Lines, "commit")+" of other branches"
	switch {
	case c.Lines == 0:
		return yours
	case c.Commits == 0:
		return lines
	}
	return yours + " and " + lines
}
