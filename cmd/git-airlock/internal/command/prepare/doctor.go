package prepare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/words"
)

// errUnhealthy reports that no backend works.
var errUnhealthy = errors.New("no prison can be made here")

func doctorCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "doctor", Usage: "show what works on this machine, and how to mend the rest",
		UsageText: "git airlock doctor [--json]",
		Description: "Checks git and each backend, and names the backend that \"--backend auto\" would choose. Works outside of a repository,\n" +
			"too. Like every command, it first finishes or undoes an interrupted landing. Exit status 1 if no backend works here.",
		Flags: []cli.Flag{cmdline.JSONFlag},
		Action: func(c *cli.Context) error {
			finishInterrupted(c)
			if s := session.Peek(c.Context, session.Options{Report: ui.Reporter{To: c.App.ErrWriter}, Now: ui.Now}); s != nil {
				s.TellRemains(c.Context)
			}
			config := session.CurrentConfig(c.Context)
			session.KeepEnvironment(config)
			var wish string
			var proxy *ui.FailingProxy
			if s := session.Peek(c.Context, session.Options{Report: ui.Reporter{To: io.Discard}, Now: ui.Now}); s != nil {
				wish, proxy = containerWish(c.Context, s), failingProxy(s)
			}
			d, err := diagnose(c.Context, prisons.Backends(), wish)
			if err != nil {
				return err
			}
			d.FailingProxy = proxy
			if c.Bool(cmdline.JSONFlag.Name) {
				err = ui.PrintJSON(c.App.Writer, d)
			} else {
				d.print(c.App.Writer, ui.Colours(config))
			}
			if err == nil && (d.Git.Problem != "" || d.Auto == nil) {
				return cmdline.Shown(errUnhealthy)
			}
			return err
		},
	}, cmdline.Takes{})
}

// finishInterrupted finishes interrupted work of this worktree's airlock, as every other command does when it opens the
// repository. An error is only a message: doctor also works outside of a repository, and in one that no other command can open.
func finishInterrupted(c *cli.Context) {
	s := session.Peek(c.Context, session.Options{Report: ui.Reporter{To: io.Discard}, Now: ui.Now})
	if s == nil {
		return
	}
	if r, err := s.Store.Here(); err == nil && r == nil {
		return
	}
	if _, err := cmdline.Open(c); err != nil && c.Err() == nil {
		messages := ui.Reporter{To: c.App.ErrWriter}
		messages.Say("finish interrupted work of the airlock: %s", err)
		messages.Hint(session.Next(err)...)
	}
}

// diagnosis is version 1 of doctor --json.
type diagnosis struct {
	Version  int                `json:"version"`
	Git      gitDiagnosis       `json:"git"`
	Backends []backendDiagnosis `json:"backends"`
	Auto     *autoDiagnosis     `json:"auto"` // null: none works
	Host     hostSide           `json:"environment"`
	// FailingProxy is the proxy of the network of this worktree's airlock, if the last connection through it failed.
	FailingProxy *ui.FailingProxy `json:"failing_proxy"`
}

// failingProxy describes the proxy of the network of this worktree's airlock, if the last connection through it failed.
func failingProxy(s *session.Session) *ui.FailingProxy {
	r, err := s.Store.Here()
	if err != nil || r == nil {
		return nil
	}
	recent := s.RecentRefusals(*r, true)
	return cmdline.FailingProxy(recent.Rules.Proxy, recent.Proxy)
}

type gitDiagnosis struct {
	Version string `json:"version"`
	Problem string `json:"problem"`
}

type backendDiagnosis struct {
	Name    string         `json:"name"`
	Works   bool           `json:"works"`
	Problem string         `json:"problem"`
	Mend    ui.Commands    `json:"mend"`
	Weaker  []string       `json:"weaker"`
	Facts   []factDocument `json:"facts"`
}

type factDocument struct {
	Name   string      `json:"name"`
	Value  string      `json:"value"`
	Weaker string      `json:"weaker"`
	Mend   ui.Commands `json:"mend"`
}

type autoDiagnosis struct {
	Backend string `json:"backend"`
	Reason  string `json:"reason"`
}

// containerWish returns the reason why auto would choose a container here, or an empty string.
func containerWish(ctx context.Context, s *session.Session) string {
	if s.Config.String("airlock.image", "") != "" {
		return "airlock.image is set"
	}
	setup, err := s.CommittedSetup(ctx)
	obeyed, settingErr := s.Config.Bool("airlock.recipe", true)
	if err != nil || settingErr != nil || !obeyed || !setup.WantsTools() {
		return ""
	}
	if yes, err := s.Environment().Consents(ctx, setup, setup.Wishes(true)); setup.Devcontainer() && (err != nil || !yes) {
		return ""
	}
	return setup.File + " asks for tools"
}

func diagnose(ctx context.Context, backends []prison.Backend, wish string) (diagnosis, error) {
	led, unknown := hostenv.Taken()
	d := diagnosis{Version: ui.DocumentVersion, Host: hostSide{cmdline.LeftOut(led), unknown, secret.Kinds()}}
	var err error
	if d.Git.Version, err = gitops.Version(ctx); err == nil {
		err = gitops.CheckVersion(ctx)
	}
	if err != nil {
		d.Git.Problem = err.Error()
	}
	for _, b := range backends {
		one := diagnoseBackend(ctx, b)
		if err := ctx.Err(); err != nil {
			return d, fmt.Errorf("examine %s: %w", b.Name(), err)
		}
		d.Backends = append(d.Backends, one)
		switch {
		case !one.Works:
		case wish != "" && b.Traits("").Images:
			d.Auto = &autoDiagnosis{one.Name, wish + " and an engine answers"}
		case d.Auto == nil && b.Traits("").Images:
			d.Auto = &autoDiagnosis{one.Name, "nothing else works here; it wants an image (airlock.image) or a recipe"}
		case d.Auto == nil:
			d.Auto = &autoDiagnosis{one.Name, "it is the first that works here, and no image is requested"}
		}
	}
	return d, nil
}

// diagnoseBackend checks one backend. Its errors do not stop the check of the others.
func diagnoseBackend(ctx context.Context, b prison.Backend) backendDiagnosis {
	d := backendDiagnosis{Name: b.Name()}
	findings, err := b.Examine(ctx)
	var unavailable *prison.Unavailable
	switch {
	case errors.As(err, &unavailable):
		d.Problem, d.Mend = unavailable.Reason, unavailable.Mend
	case err != nil:
		d.Problem = err.Error()
	default:
		d.Works = true
	}
	for _, f := range findings {
		d.Facts = append(d.Facts, factDocument{f.Name, f.Value, f.Lack, f.Mend})
		if f.Lack != "" {
			d.Weaker = append(d.Weaker, f.Lack)
		}
	}
	return d
}

// print prints a diagnosis as text. The commands that mend a problem follow it, ready to paste.
func (d diagnosis) print(w io.Writer, p ui.Paint) {
	mend := func(commands []string) {
		for _, c := range commands {
			command, comment := words.CutComment(c)
			fmt.Fprintf(w, "    mend: %s\n", p.Bold(command))
			if comment != "" {
				fmt.Fprintf(w, "          # %s\n", comment)
			}
		}
	}
	fmt.Fprintf(w, "git: %s\n", gitops.Text(d.Git.Version))
	if d.Git.Problem != "" {
		fmt.Fprintf(w, "  problem: %s\n", gitops.Text(d.Git.Problem))
	}
	d.Host.print(w, p)
	if f := d.FailingProxy; f != nil {
		fmt.Fprintf(w, "proxy: %s %s\n", p.Red("fails:"), f.Text(ui.Now()))
		mend(f.Next)
	}
	for _, b := range d.Backends {
		if b.Works {
			fmt.Fprintf(w, "%s: %s\n", b.Name, p.Green("works"))
		} else {
			fmt.Fprintf(w, "%s: %s: %s\n", b.Name, p.Red("does not work"), gitops.Text(b.Problem))
			mend(b.Mend)
		}
		for _, f := range b.Facts {
			fmt.Fprintf(w, "  %s: %s\n", f.Name, gitops.Text(f.Value))
			if f.Weaker != "" {
				fmt.Fprintf(w, "    %s %s\n", p.Yellow("weaker:"), gitops.Text(f.Weaker))
			}
			mend(f.Mend)
		}
	}
	if d.Auto == nil {
		fmt.Fprintln(w, "auto: no backend works here")
		return
	}
	fmt.Fprintf(w, "auto: takes %s: %s\n", d.Auto.Backend, d.Auto.Reason)
}

// hostSide describes the environment of programs on the host.
type hostSide struct {
	LeftOut []string `json:"left_out"` // leads into the work tree
	Unknown []string `json:"unknown"`  // variables that are not passed on
	Sources []string `json:"sources"`  // of credentials, that can be used here
}

func (h hostSide) print(w io.Writer, p ui.Paint) {
	for _, line := range h.LeftOut {
		fmt.Fprintf(w, "environment: %s\n", p.Yellow(gitops.Text(line).String()))
	}
	if len(h.Unknown) > 0 {
		fmt.Fprintf(w, "environment: not passed to programs on the host: %s\n", gitops.Text(strings.Join(h.Unknown, " ")))
		fmt.Fprintf(w, "    keep: %s\n", p.Bold("git config --global airlock.keepEnv '<NAME> <NAME>'"))
	}
	fmt.Fprintf(w, "sources of keys: %s\n", strings.Join(h.Sources, ", "))
}
