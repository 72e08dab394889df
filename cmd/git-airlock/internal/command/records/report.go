package records

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/report"
)

func reportCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "report", Usage: "show what happened in a run, for people",
		UsageText: "git airlock report [RUN] [--html FILE | --open | --json]",
		Description: "Prints the run in one sentence, what to look at first, what could not be seen, and the course of a run: its commits, programs, tests,\n" +
			"hosts and events. A RUN is a number of the airlock here (3), SESSION/3, the full name of a ref, or \"last\",\n" +
			"which is the default. The report is made from the record alone, so it can be made in every clone that has the record.\n\n" +
			"With --html, the report is one file of at most 400 kB for a browser. It loads nothing and has no scripts. Text from inside\n" +
			"is shown with control characters and invisible characters as escapes.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "html", Usage: "write a page into this `file`, or to standard output if it is -"},
			&cli.BoolFlag{Name: "open", Usage: "write a page into the git folder, where it stays for a day, and open it in your browser"},
			&cli.BoolFlag{Name: "text", Usage: "print text, which is the default"},
			cmdline.JSONFlag,
		},
		Action: inAny(showReport),
	}, cmdline.Takes{Most: 1})
}

func showReport(c *cli.Context, s *session.Session) error {
	chosen := 0
	for _, name := range []string{"html", "open", "text", cmdline.JSONFlag.Name} {
		if c.IsSet(name) {
			chosen++
		}
	}
	if chosen > 1 || c.IsSet("html") && c.String("html") == "" {
		return ui.Usagef("report: use one of --html FILE, --open, --text and --json")
	}
	_, run, err := recordOf(c.Context, s, nameOf(c))
	if err != nil {
		return err
	}
	view := report.Of(run)
	switch {
	case c.IsSet("html"):
		return writePage(c, s, view, c.String("html"))
	case c.Bool("open"):
		return openPage(s, run)
	case c.Bool(cmdline.JSONFlag.Name):
		content, err := view.JSON()
		if err != nil {
			return err
		}
		_, err = c.App.Writer.Write(content)
		return err
	}
	return cmdline.Show(c, s, true, func(out io.Writer, p ui.Paint) error { return view.Print(out, p) })
}

func writePage(c *cli.Context, s *session.Session, view report.View, file string) error {
	content, err := view.HTML()
	switch {
	case err != nil:
		return err
	case file == "-":
		_, err = c.App.Writer.Write(content)
		return err
	}
	if err := checkPlace(file); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if s.Dry {
		s.Report.Say("would write the report of run %d into %s", view.Run.Number, gitops.Text(file))
		return nil
	}
	if err := cmdline.ReplaceFile(file, content, 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	s.Report.Say("the report of run %d is in %s", view.Run.Number, gitops.Text(file))
	return nil
}

// checkPlace returns an error if [cmdline.ReplaceFile] could not write a file. It changes nothing.
func checkPlace(file string) error {
	if info, err := os.Lstat(file); err == nil && info.IsDir() {
		return &fs.PathError{Op: "replace", Path: file, Err: syscall.EISDIR}
	}
	dir := filepath.Dir(file)
	const writable = 2 // W_OK of access(2)
	if err := syscall.Access(dir, writable); err != nil {
		return &fs.PathError{Op: "write", Path: dir, Err: err}
	}
	return nil
}

// pageFolder is the folder of opened pages in the git folder. Browsers in a sandbox see no folder of temporary files but their own.
const pageFolder = "airlock-report"

// pageKept is the age from which an opened page is removed when another one is written.
const pageKept = 24 * time.Hour

// openPage keeps the page: the browser reads it when this command has ended.
func openPage(s *session.Session, run record.Run) error {
	if s.Dry {
		s.Report.Say("would open the report of run %d in your browser", run.Manifest.Run)
		return nil
	}
	content, err := report.Of(run).HTML()
	if err != nil {
		return err
	}
	dir := filepath.Join(s.Repo.CommonDir, pageFolder)
	file := filepath.Join(dir, fmt.Sprintf("run-%d-%.12s.html", run.Manifest.Run, run.Commit))
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		removePages(dir, s.Now().Add(-pageKept))
		err = cmdline.ReplaceFile(file, content, 0o644)
	}
	if err != nil {
		return environment.Advise(fmt.Errorf("write the report: %w", err), "git airlock report --html FILE")
	}
	s.Report.Say("the report of run %d is in %s", run.Manifest.Run, gitops.Text(file))
	if err := ui.OpenPage(file); err != nil {
		return environment.Advise(err, "open "+gitops.Pasteable(file)+" in a browser")
	}
	return nil
}

// removePages removes the pages that were opened before a moment. What stays is removed the next time.
func removePages(dir string, before time.Time) {
	pages, _ := os.ReadDir(dir)
	for _, page := range pages {
		if info, err := page.Info(); err == nil && info.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(dir, page.Name()))
		}
	}
}
