package landing

import (
	"io"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/manual"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote"
)

func logCommand() *cli.Command {
	return &cli.Command{
		Name: "log", Usage: "run git log and show the origin of landed commits",
		UsageText: "git airlock log [--egress] [git log options]\n   git airlock log --ops [--json]",
		Description: "Takes all options of git log. Control characters and characters that hide text are escaped in the output. With\n" +
			"--egress, it also shows the notes on what the prison reached before each commit, see git-airlock-net(1). With --ops, it lists\n" +
			"the landings, undos and redos of this airlock instead, newest first, with their numbers.\n\n" +
			"The origin is in notes, which a plain git push and git fetch leave where they are:\n\n" +
			"     git push origin refs/notes/airlock\n" +
			"     git fetch origin refs/notes/airlock:refs/notes/airlock",
		// git log parses its options itself.
		SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			args := c.Args().Slice()
			operations := len(args) > 0 && args[0] == "--ops"
			if words := args[min(1, len(args)):]; operations && len(words) > 0 && isHelp(words[0]) || len(args) > 0 && isHelp(args[0]) {
				cmdline.PageOf(c).Help(c.App.Writer, manual.WidthOf(c.App.Writer))
				return nil
			}
			if operations {
				return showOperations(c, args[1:])
			}
			return cmdline.InAnyRepository(func(c *cli.Context, s *session.Session, _ bool) error { return showGitLog(c, s, args) })(c)
		},
	}
}

func isHelp(word string) bool { return word == "-h" || word == "--help" }

// showGitLog shows the log through git's pager.
func showGitLog(c *cli.Context, s *session.Session, args []string) error {
	notes := []string{"--notes=" + promote.NotesRef}
	if i, end := slices.Index(args, "--egress"), slices.Index(args, "--"); i >= 0 && (end < 0 || i < end) { // what follows "--" is a path
		notes = append(notes, "--notes="+promote.EgressRef)
		args = slices.Delete(slices.Clone(args), i, i+1)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	return cmdline.Show(c, s, true, func(out io.Writer, p ui.Paint) error {
		err := s.Repo.Log(c.Context, cwd, out, bool(p), append(notes, args...)...)
		if err != nil {
			err = cmdline.GitSaid(err)
		}
		return err
	})
}
