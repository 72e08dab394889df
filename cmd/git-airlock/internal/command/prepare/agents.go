package prepare

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/agents"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/request"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
)

func agentsCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "agents", Usage: "list the coding agents that start and run know by name",
		UsageText: "git airlock agents [--json]",
		Description: "Prints each agent with its program on this machine, or how to install it. \"untried\" marks the agents whose description\n" +
			"here was written from their documentation. The manual page says what an agent gets inside. Works outside of\n" +
			"a repository, too.",
		Flags:  []cli.Flag{cmdline.JSONFlag},
		Action: listAgents,
	}, cmdline.Takes{})
}

// listAgents prints the agents. Outside of a repository, and in one without a work tree, the user's configuration can describe agents, too.
func listAgents(c *cli.Context) error {
	err := cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
		d, err := agentsOf(s.Settings)
		if err != nil {
			return err
		}
		return cmdline.Print(c, s, true, d, d.print)
	})(c)
	if !errors.Is(err, gitops.ErrNoRepository) && !errors.Is(err, gitops.ErrBare) {
		return err
	}
	settings := session.CurrentSettings(c.Context)
	d, err := agentsOf(settings)
	switch {
	case err != nil:
		return err
	case c.Bool(cmdline.JSONFlag.Name):
		return ui.PrintJSON(c.App.Writer, d)
	}
	return d.print(c.App.Writer, ui.Colours(gitops.ConfigOf(settings)))
}

// agentsDocument is version 1 of agents --json.
type agentsDocument struct {
	Version int             `json:"version"`
	Agents  []agentDocument `json:"agents"`
}

func agentsOf(settings []gitops.Setting) (agentsDocument, error) {
	d := agentsDocument{Version: ui.DocumentVersion}
	all, err := request.Profiles(settings)
	for _, p := range all {
		d.Agents = append(d.Agents, describe(p, ui.Variable("PATH")))
	}
	return d, err
}

// agentDocument is an agent in the output of agents --json.
type agentDocument struct {
	Name    string   `json:"name"`
	Program string   `json:"program"`
	Path    string   `json:"path,omitempty"`
	Version string   `json:"program_version,omitempty"`
	Missing string   `json:"missing,omitempty"`
	Mend    string   `json:"mend,omitempty"`
	Allow   []string `json:"allow"`
	Keys    []string `json:"keys"`
	Untried bool     `json:"untried"`
	Own     bool     `json:"own"`
}

func describe(p agents.Profile, path string) agentDocument {
	d := agentDocument{Name: p.Name, Program: p.Program, Allow: p.Allow, Keys: p.Keys, Untried: p.Untried, Own: p.Own}
	f, err := agents.Find(p, path)
	d.Path, d.Version = f.Path, f.Version
	if err != nil {
		d.Missing, d.Mend = err.Error(), p.Get
	}
	if missing, ok := errors.AsType[*agents.Missing](err); ok {
		d.Missing = missing.Reason // the document has the name already
	}
	return d
}

func (d agentsDocument) print(out io.Writer, p ui.Paint) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, a := range d.Agents {
		where := gitops.Text(a.Path).String()
		if a.Version != "" {
			where += " (" + gitops.Text(a.Version).String() + ")"
		}
		if a.Missing != "" {
			where = "not here"
			if a.Mend != "" {
				where += ": " + a.Mend
			}
		}
		if a.Untried {
			where += "  untried"
		}
		fmt.Fprintf(table, "%s\t%s\n", p.Bold(gitops.Text(a.Name).String()), where)
	}
	return table.Flush()
}
