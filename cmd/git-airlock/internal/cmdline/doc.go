/*
Package cmdline turns the command line of every command into a call, and the result of the call into an exit status.

To add a command, write internal/command/ROOM/NAME.go with one function, and add the function to Commands of that room:

	func reviewCommand() *cli.Command {
		return cmdline.Command(&cli.Command{
			Name: "review", Usage: "show pending commits", UsageText: "git airlock review [--json] [COMMIT]",
			Flags: []cli.Flag{cmdline.JSONFlag},
			Action: cmdline.OnAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
				engine := s.Engine(r)
				defer engine.Close()
				list, err := verdict.List(c.Context, engine) // no printing in there
				return errors.Join(err, cmdline.Show(c, s, true, func(out io.Writer, p ui.Paint) error { return print(out, p, list) }))
			}),
		}, cmdline.Takes{Most: 1})
	}

A new room has a doc.go with Commands, a line in main.go and a row in the import table of house_test.go. [Takes] bounds what may
follow the options, [InRepository] and [OnAirlock] open the repository, [Show] prints through the pager, [Print] a document or text, and [Subcommand] makes
commands below a command. An error decides the exit status, see [ExitStatus]; [Shown] marks an error that the output has shown.
*/
package cmdline
