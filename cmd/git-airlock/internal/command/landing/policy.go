package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/teams"
	"github.com/git-airlock/git-airlock/words"
)

func policyCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "policy", Usage: "list the rules that commits must pass, and the commits that they hold",
		UsageText: "git airlock policy [--json]",
		Description: "A rule holds a commit, flags it or is off. Set a rule with git config airlock.policy.<rule> hold|flag|off. A team's\n" +
			"policy in " + policy.TeamRef + " can make rules stricter. Works without an airlock, too.",
		Flags: []cli.Flag{cmdline.JSONFlag},
		Action: cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
			d, err := policyOf(c.Context, s)
			if err != nil {
				return err
			}
			return cmdline.Print(c, s, true, d, d.print)
		}),
	}, cmdline.Takes{})
}

// policyDocument is version 1 of policy --json.
type policyDocument struct {
	Version     int         `json:"version"`
	Team        *teamState  `json:"team"` // null if there is none
	MaxFileSize int64       `json:"max_file_size"`
	Rules       []ruleState `json:"rules"`
	promote.Findings
}

type teamState struct {
	Ref    string     `json:"ref"`
	Commit gitops.OID `json:"commit"`
}

// policyOf reads the settings, and the verdicts on commits of the airlock here, if there is one.
func policyOf(ctx context.Context, s *session.Session) (policyDocument, error) {
	d := policyDocument{Version: ui.DocumentVersion}
	config := s.Config
	r, err := s.Here(ctx)
	switch {
	case errors.Is(err, session.ErrNoAirlock):
	case err != nil:
		return d, err
	default:
		engine := s.Engine(r)
		defer engine.Close()
		config = config.With(r.Settings)
		if d.Findings, err = engine.Findings(ctx); err != nil {
			return d, err
		}
	}
	settings, err := teams.ReadPolicy(ctx, s.Repo, config)
	if err != nil {
		return d, err
	}
	team, err := s.Repo.Ref(ctx, policy.TeamRef)
	if err != nil {
		return d, err
	}
	if team != "" {
		d.Team = &teamState{policy.TeamRef, team}
	}
	d.MaxFileSize = settings.MaxFileSize()
	d.Rules = ruleStates(settings, d.Findings)
	return d, nil
}

// print prints a document as text: the rules as a table, then the commits.
func (d policyDocument) print(out io.Writer, p ui.Paint) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range d.Rules {
		found := ""
		if len(r.Holds) > 0 {
			found += fmt.Sprintf(", holds %d", len(r.Holds))
		}
		if len(r.Flags) > 0 {
			found += fmt.Sprintf(", %d flagged", len(r.Flags))
		}
		fmt.Fprintf(table, "%s\t%s%s\t%s\n", r.ID, r.setting(), found, r.Doc)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if d.Team != nil {
		fmt.Fprintf(out, "team      %s %.12s\n", d.Team.Ref, d.Team.Commit)
	}
	for _, v := range d.Held {
		fmt.Fprintf(out, "%s      %s %s\n", p.Red("held"), p.Yellow(fmt.Sprintf("%.12s", v.Commit)), v.Subject)
		for _, f := range v.Findings {
			fmt.Fprintf(out, "            %s %s: %s\n", f.Action, f.Rule, f.Detail)
		}
	}
	for _, a := range d.Accepted {
		fmt.Fprintf(out, "accepted  %s for %s\n", gitops.Text(a.String()), words.Count(len(a.Commits), "commit"))
	}
	for _, x := range d.Dropped {
		fmt.Fprintf(out, "dropped   %.12s (inner) %s\n", x.Commit, x.Subject)
	}
	return nil
}

// ruleState is a rule with its setting and the commits that it holds.
type ruleState struct {
	ID      string        `json:"id"`
	Action  policy.Action `json:"setting"`
	Default policy.Action `json:"default"`
	Source  policy.Source `json:"source"` // "default", "config" or "team"
	Key     string        `json:"key"`
	Doc     string        `json:"description"`
	Holds   []gitops.OID  `json:"holds"` // pending commits
	Flags   []gitops.OID  `json:"flags"` // landed commits
}

func ruleStates(s policy.Settings, all promote.Findings) []ruleState {
	var states []ruleState
	for _, d := range s.Rules() {
		state := ruleState{ID: d.ID, Action: s.Action(d.ID), Default: d.Default, Source: cmp.Or(s.Source(d.ID), "default"), Key: d.Key, Doc: d.Doc}
		for _, v := range all.Held {
			for _, f := range v.Findings {
				if f.Rule == d.ID && f.Action == policy.Hold {
					state.Holds = append(state.Holds, v.Commit)
				}
			}
		}
		for _, f := range all.Flagged {
			for _, rule := range f.Rules {
				if rule == d.ID {
					state.Flags = append(state.Flags, f.Commit)
				}
			}
		}
		states = append(states, state)
	}
	return states
}

// setting returns the action of a rule as text.
func (r ruleState) setting() string {
	switch {
	case r.Key == "":
		return "refuse"
	case r.Source == "default":
		return r.Action.String()
	}
	return fmt.Sprintf("%s (%s)", r.Action, r.Source)
}
