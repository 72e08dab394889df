package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/store"
	"github.com/git-airlock/git-airlock/words"
)

func inspectCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "inspect", Usage: "show the record of a run, and verify it",
		UsageText: "git airlock inspect [RUN] [--verify] [--json]",
		Description: "A RUN is a number of the airlock here (3), SESSION/3, the full name of a ref, or \"last\", which is the default. inspect works\n" +
			"in every repository that has the record, also where no airlock ever was.\n\n" +
			"With --verify, inspect compares each hash of the record: those of git, those in SHA256SUMS, the message with the manifest, and\n" +
			"the chain of the session's runs. The exit status is 0 if the record is whole, and 1 otherwise. A record that somebody\n" +
			"removed from the end of the chain, or replaced together with all later ones, is not found this way. Without --verify, all\n" +
			"but the chain is compared, and a record that is not whole is reported on standard error. So do report, compare and execs.\n" +
			"runs compares the messages with the manifests.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "verify", Usage: "check every hash and the chain"}, cmdline.JSONFlag},
		Action: inAny(inspectRun),
	}, cmdline.Takes{Most: 1})
}

var (
	// errNotWhole reports a record with faults, which were printed.
	errNotWhole = errors.New("the record is not whole")
	// errDifferent reports that two runs differ, which was printed.
	errDifferent = errors.New("the runs have other changes")
)

func inspectRun(c *cli.Context, s *session.Session) error {
	name := nameOf(c)
	if c.Bool("verify") {
		return verifyRun(c, s, name)
	}
	_, run, err := recordOf(c.Context, s, name)
	if err != nil {
		return err
	}
	return cmdline.Print(c, s, true, run.Manifest, func(out io.Writer, _ ui.Paint) error { return printManifest(out, run) })
}

// nameOf returns the name of the run that the command line names, or else of the newest one.
func nameOf(c *cli.Context) string {
	if words := cmdline.Words(c); len(words) > 0 {
		return words[0]
	}
	return "last"
}

// recordOf reads the record of the run with a name, and prints the faults of the record, because what a command shows of such a record may be
// wrong.
func recordOf(ctx context.Context, s *session.Session, name string) (store.Entry, record.Run, error) {
	e, _, err := find(ctx, s, name)
	if err != nil {
		return e, record.Run{}, err
	}
	run, err := store.Load(ctx, s.Repo, e)
	if err == nil && len(run.Faults) > 0 {
		s.Report.Say("the record of run %s is not whole: %s (see: git airlock inspect %s --verify)", e.Name(), gitops.Text(run.Faults[0]), e.Name())
	}
	return e, run, err
}

// verifyRun prints what is wrong with the record of the run with a name.
func verifyRun(c *cli.Context, s *session.Session, name string) error {
	e, all, err := find(c.Context, s, name)
	if err != nil {
		return err
	}
	faults := store.Verify(c.Context, s.Repo, e, all)
	whole := len(faults) == 0
	if c.Bool(cmdline.JSONFlag.Name) {
		err = ui.PrintJSON(c.App.Writer, map[string]any{"version": ui.DocumentVersion, "run": e.Name(), "commit": e.Commit, "whole": whole, "faults": faults})
	} else if whole {
		_, err = fmt.Fprintf(c.App.Writer, "%s: whole, commit %s\n", e.Name(), e.Commit)
	} else {
		err = cmdline.Lines(faults, func(_ ui.Paint, fault string) string { return fmt.Sprintf("%s: %s", e.Name(), gitops.Text(fault)) })(c.App.Writer, false)
	}
	if err == nil && !whole {
		err = cmdline.Shown(errNotWhole)
	}
	return err
}

// printManifest prints a manifest in words. All texts of a record may come from an agent.
func printManifest(out io.Writer, run record.Run) error {
	m := run.Manifest
	var b strings.Builder
	line := func(label, format string, values ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", label, gitops.Text(fmt.Sprintf(format, values...)))
	}
	line("run", "%d of session %s, commit %s", m.Run, m.Session, run.Commit)
	line("command", "%s", m.Command(1000))
	line("time", "%s, %s", m.Started.Local().Format(time.DateTime), lasted(m))
	exit := "not known"
	if m.Exit != nil {
		exit = strings.TrimSpace(fmt.Sprintf("%d %s", *m.Exit, m.Signal))
	}
	line("result", "%s (exit status %s)", m.Status, exit)
	for _, reason := range m.Reasons {
		line("", "%s", reason)
	}
	line("branch", "%s: %.12s..%.12s, %d landed", strings.TrimPrefix(m.Branch, "refs/heads/"), m.Outer.Before, m.Outer.After, m.Landed)
	for _, h := range m.Held {
		line("held", "%s: %s", h.Reason, h.Message)
	}
	for _, w := range m.Waiting {
		line("waiting", "%s on %s, which does not land by itself", words.Count(w.Commits, "commit"), w.Ref)
		line("next", "%s", w.Next)
	}
	for _, f := range m.Flagged {
		line("flagged", "%.12s by %s: %s", f.Commit, f.Rule, f.Meaning)
	}
	line("your files", "%s", compared(m.Fingerprint, m.Landed))
	line("prison", "%s, network %s, %d MiB, %g cores, %d processes", m.Backend, m.Network, m.Isolation.Memory>>20, m.Isolation.CPUs, m.Isolation.PIDs)
	for _, w := range m.Weaker {
		line("weaker", "%s", w)
	}
	for _, limit := range m.LimitsHit {
		line("limit hit", "%s", limit)
	}
	line("rules", "%s, review %s", strings.Join(m.Policy, ", "), cmp.Or(m.Review, "not known"))
	line("variables", "%s", cmp.Or(strings.Join(m.Environment, ", "), "none"))
	line("workspace", "made from %.12s: %.12s..%.12s, checkpoints %d..%d", m.Base, m.Inner.Before, m.Inner.After, m.Checkpoints.Before, m.Checkpoints.After)
	if m.Checkpoints.Before == 0 {
		line("", "%s", m.Checkpoints.Missing())
	}
	line("made by", "git-airlock %s", m.Program)
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		f := m.Files[name]
		note := f.Note
		if f.Cut > 0 {
			note = fmt.Sprintf("%s left out; %s", sized(f.Cut), note)
		}
		line("file", "%s", strings.TrimRight(fmt.Sprintf("%-14s %8s  %s", name, sized(f.Size), note), "; "))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Absent)) {
		line("absent", "%-14s %s", name, m.Absent[name])
	}
	for _, v := range m.Visibility {
		line("not seen", "%s", v)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// sized returns a number of bytes for people. Anybody can push a record with any numbers.
func sized(n int64) string {
	const most = 1 << 50
	if n < 0 || n > most {
		return "?"
	}
	return words.Bytes(n)
}

// compared describes the fingerprints before and after a run.
func compared(f record.FingerprintRange, landed int) string {
	switch {
	case f.Before.Tree == f.After.Tree && f.Before.Index == f.After.Index:
		return "unchanged during the run"
	case landed > 0:
		return "changed during the run, in which commits landed"
	}
	return "changed during the run, in which nothing landed: by you, or by another program"
}
