package net

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/edge"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// credentials describes the credentials of a network. The value is not known here.
func credentials(n session.Network) []ui.NetworkCredential {
	all := []ui.NetworkCredential{}
	for _, c := range n.Rules.Credentials {
		shown := ui.NetworkCredential{Name: c.Name, Source: c.Source, Hosts: network.HostsOf(c), Variables: c.Variables}
		if i := slices.IndexFunc(n.State.Credentials, func(u control.CredentialUse) bool { return u.Name == c.Name }); i >= 0 {
			u := n.State.Credentials[i]
			shown.Value, shown.Requests, shown.Refused = u.Known, u.Requests, u.Refused
			if !u.Last.IsZero() {
				shown.Last = &u.Last
			}
		}
		all = append(all, shown)
	}
	return all
}

// netCredential shows a credential of the airlock, or of the settings where there is none, and reads its value, which it does not show.
func netCredential(c *cli.Context, s *session.Session, args []string) error {
	n, problem, err := s.Credential(c.Context, args[0])
	if err != nil {
		return err
	}
	shown := credentials(n)[0]
	if problem != nil {
		shown.Problem = gitops.Text(problem.Error()).String()
	}
	if c.Bool(edge.JSONFlag.Name) {
		if err := ui.PrintJSON(c.App.Writer, shown); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintln(c.App.Writer, shown.Text(ui.Paint(false), ui.Now())); err != nil {
		return err
	}
	if problem == nil || shown.Value {
		return nil
	}
	return environment.Advise(problem, "git config --show-origin --get-regexp '^airlock.credential."+shown.Name+"'")
}
