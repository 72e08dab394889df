package landing

import (
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/undo"
)

// listed is an operation in version 1 of log --ops --json.
type listed struct {
	Number int          `json:"number"`
	Kind   string       `json:"kind"`
	Of     int          `json:"of"` // the landing that was undone, redone or reverted; 0 for a landing
	At     time.Time    `json:"at"`
	Branch string       `json:"branch"` // escaped
	Before gitops.OID   `json:"before"`
	After  gitops.OID   `json:"after"`
	Landed []gitops.OID `json:"landed"` // outer commits
	Stands bool         `json:"stands"` // a landing that was not taken back

	title string
}

// showOperations prints the operations of the airlock here, newest first.
func showOperations(c *cli.Context, args []string) error {
	asJSON := len(args) == 1 && args[0] == "--"+cmdline.JSONFlag.Name
	if len(args) > 0 && !asJSON {
		return ui.Usagef("log --ops: unexpected argument %q", gitops.Text(args[0]))
	}
	return cmdline.OnAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
		engine := s.Engine(r)
		defer engine.Close()
		chain, err := undo.List(c.Context, engine)
		if err != nil {
			return err
		}
		list := listOf(chain)
		if asJSON {
			return ui.PrintJSON(c.App.Writer, map[string]any{"version": ui.DocumentVersion, "operations": list})
		}
		if len(list) == 0 {
			_, err := fmt.Fprintln(c.App.Writer, "nothing has landed")
			return err
		}
		return cmdline.Show(c, s, true, cmdline.Lines(list, operationLine))
	})(c)
}

func listOf(chain operation.Chain) (list []listed) {
	done, _ := chain.Landings()
	for _, o := range slices.Backward(chain) {
		l := listed{Number: o.Number, Kind: string(o.Kind), Of: o.Of, At: o.At, Branch: gitops.Text(o.Branch).String(), Before: o.Before, After: o.After, title: o.Title()}
		l.Stands = slices.ContainsFunc(done, func(d operation.Operation) bool { return d.Number == o.Number })
		for _, pair := range o.Landed {
			l.Landed = append(l.Landed, pair.Outer)
		}
		list = append(list, l)
	}
	return list
}

func operationLine(p ui.Paint, l listed) string {
	taken := ""
	if l.Kind == string(operation.Land) && !l.Stands {
		taken = p.Yellow("  taken back")
	}
	return fmt.Sprintf("%3d  %s  %.12s..%.12s  %s%s", l.Number, l.At.Local().Format(time.DateTime), l.Before, l.After, gitops.Text(l.title), taken)
}
