package review

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func diffCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "diff", Usage: "show the changes of a commit",
		UsageText: "git airlock diff [--no-seen] [--text] [REV] [-- PATH...]",
		Description: "Without REV, shows the changes of all commits that wait, one after the other. No program of the repository or of\n" +
			"your configuration is run, and no attribute of the tree can hide a change. Files that were shown on a terminal to the end\n" +
			"count as seen, until they change again. Of a binary file only --text shows the content.",
		Flags: []cli.Flag{noSeenFlag, &cli.BoolFlag{Name: "text", Aliases: []string{"a"}, Usage: "show all files as text, with escapes for bytes that are none"}},
		Action: onList(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			d, err := documentOf(c.Context, s, r, cmdline.Words(c))
			if err != nil {
				return err
			}
			shown := changes{s: s, text: c.Bool("text")}
			if shown.paths, err = fromTop(s, cmdline.Inside(c)); err != nil {
				return err
			}
			whole, err := cmdline.ShowWhole(c, s, func(out io.Writer, p ui.Paint) error {
				if err := d.printRebased(out, p); err != nil {
					return err
				}
				for _, x := range d.Commits {
					if _, err := fmt.Fprintf(out, "%s %s\n", p.Yellow("commit "+x.name()), x.Subject); err != nil {
						return err
					}
					if err := shown.show(c.Context, out, p, x); err != nil {
						return err
					}
				}
				return nil
			})
			if err == nil && whole && !c.Bool(noSeenFlag.Name) {
				shown.record(c.Context, r)
			}
			return err
		}),
	}, cmdline.Takes{Most: 1, Paths: true})
}
