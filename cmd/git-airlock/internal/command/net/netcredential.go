package net

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
)

// credentialDocument is version 1 of net credential --json.
type credentialDocument struct {
	Version int `json:"version"`
	ui.NetworkCredential
}

// netCredential shows a credential of the airlock, or of the settings if there is no airlock. It also reads the credential's value, to
// report an error, but never shows the value.
func netCredential(c *cli.Context, s *session.Session, args []string) error {
	n, problem, err := s.Credential(c.Context, args[0])
	if err != nil {
		return err
	}
	shown := cmdline.Credentials(n.Rules, n.State.Credentials)[0]
	if problem != nil {
		shown.Problem = gitops.Text(problem.Error()).String()
	}
	if c.Bool(cmdline.JSONFlag.Name) {
		if err := ui.PrintJSON(c.App.Writer, credentialDocument{ui.DocumentVersion, shown}); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintln(c.App.Writer, shown.Text(ui.Paint(false), ui.Now())); err != nil {
		return err
	}
	switch {
	case problem == nil:
		return nil
	case shown.Value && strings.HasPrefix(shown.Source, "env:"): // only the shell of the start has the variable
		if !c.Bool(cmdline.JSONFlag.Name) {
			s.Report.Say("%s", shown.Problem)
		}
		return nil
	}
	return environment.Advise(problem, "git config --show-origin --get-regexp '^airlock.credential."+shown.Name+"'")
}
