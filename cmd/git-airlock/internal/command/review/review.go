package review

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/edge"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/judgement"
	"github.com/git-airlock/git-airlock/promote/review"
)

func reviewCommand() *cli.Command {
	return edge.Command(&cli.Command{
		Name: "review", Usage: "list the commits that wait for your verdict",
		UsageText: "git airlock review [-p] [--json] [REV...]",
		Description: "Lists pending and rejected commits, oldest first, with their states: new, approved, rejected, asked (for a fix),\n" +
			"changed (in the place of a commit that had a verdict), undone, or blocked (does not apply without a commit that was\n" +
			"rejected, undone or must be fixed). Exit status 3 while a commit waits for a verdict.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "patch", Aliases: []string{"p"}, Usage: "show the changes of each commit, too"}, edge.JSONFlag},
		Action: edge.OnAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			d, err := documentOf(c.Context, s, r, edge.Words(c))
			if err != nil {
				return err
			}
			if c.Bool(edge.JSONFlag.Name) {
				err = ui.PrintJSON(c.App.Writer, d)
			} else {
				err = edge.Show(c.Context, s, "review", true, func(out io.Writer, p ui.Paint) error {
					return d.print(c.Context, s, out, p, c.Bool("patch"))
				})
			}
			if err != nil || !slices.ContainsFunc(d.Commits, func(x reviewed) bool { return x.State.Waits() }) {
				return err
			}
			return edge.Shown(&environment.Refusal{Text: "commits wait for a verdict"})
		}),
	}, edge.Takes{Most: mostCommits})
}

// document is version 1 of review --json.
type document struct {
	Version int         `json:"version"`
	Mode    review.Mode `json:"mode"`
	judgement.Counts
	Commits []reviewed `json:"commits"`
}

// reviewed is a commit of the document. Its text is escaped.
type reviewed struct {
	Number   int          `json:"number"`
	State    review.State `json:"state"`
	Commit   gitops.OID   `json:"commit"` // empty if it has not been built
	Inner    gitops.OID   `json:"inner"`
	Subject  string       `json:"subject"`
	Added    int          `json:"added"`
	Removed  int          `json:"removed"`
	Files    []file       `json:"files"`
	Findings []finding    `json:"findings"`
	Needs    []gitops.OID `json:"needs"` // inner commits
	Reason   string       `json:"reason"`
	By       string       `json:"by"`
	At       *time.Time   `json:"at"`
	Replaces gitops.OID   `json:"replaces"` // the commit with a verdict in whose place it is
}

type file struct {
	Path    string     `json:"path"`
	Added   int        `json:"added"` // -1 for a binary file
	Removed int        `json:"removed"`
	Blob    gitops.OID `json:"blob"`
}

type finding struct {
	Rule   string `json:"rule"`
	Action string `json:"action"`
	Detail string `json:"detail"`
}

// documentOf lists the commits of an airlock, or those that some names stand for.
func documentOf(ctx context.Context, s *session.Session, r airlock.Record, names []string) (document, error) {
	engine := s.Engine(r)
	defer engine.Close()
	d := document{Version: ui.DocumentVersion, Commits: []reviewed{}}
	list, err := judgement.List(ctx, engine)
	if err != nil {
		return d, err
	}
	if d.Mode, err = promote.ReadReview(s.Config.With(r.Settings)); err != nil {
		return d, err
	}
	d.Counts = judgement.Count(list)
	var wanted []gitops.OID
	for _, name := range names {
		one, err := judgement.Find(ctx, engine, list, name)
		if err != nil {
			return d, environment.Advise(err, "git airlock review")
		}
		wanted = append(wanted, one.Inner)
	}
	for _, x := range list {
		if len(names) == 0 || slices.Contains(wanted, x.Inner) {
			d.Commits = append(d.Commits, reviewedOf(x))
		}
	}
	return d, nil
}

func reviewedOf(x judgement.Reviewable) reviewed {
	r := reviewed{Number: x.Number, State: x.State, Commit: x.Commit, Inner: x.Inner, Subject: x.Subject, Added: x.Added(), Removed: x.Removed(),
		Files: []file{}, Findings: []finding{}, Needs: append([]gitops.OID{}, x.Needs...), Reason: x.Reason, By: x.By, Replaces: x.Before}
	if !x.At.IsZero() {
		r.At = &x.At
	}
	for _, f := range x.Files {
		r.Files = append(r.Files, file{gitops.Text(f.Path).String(), f.Added, f.Removed, f.Blob})
	}
	for _, f := range x.Findings {
		r.Findings = append(r.Findings, finding{f.Rule, f.Action.String(), f.Detail})
	}
	return r
}

// print prints the document as text.
func (d document) print(ctx context.Context, s *session.Session, out io.Writer, p ui.Paint, patches bool) error {
	if len(d.Commits) == 0 {
		_, err := fmt.Fprintln(out, "nothing waits for a review")
		return err
	}
	files := func(r reviewed) string { return ui.Count(len(r.Files), "file") }
	width, wide := 0, 0
	for _, r := range d.Commits {
		width, wide = max(width, len(r.lines())), max(wide, len(files(r)))
	}
	for _, r := range d.Commits {
		fmt.Fprintf(out, "%3d  %s  %s  %-*s  %-*s  %s\n", r.Number, painted(p, r.State), p.Yellow(r.short()), width, r.lines(), wide, files(r), r.Subject)
		r.printMore(out, d.Commits)
		if patches && r.Commit != "" {
			if err := s.Repo.ShowChange(ctx, out, bool(p), r.Commit); err != nil {
				return err
			}
		}
	}
	return nil
}

// painted returns a state in its colour, with spaces up to the width of the longest one.
func painted(p ui.Paint, s review.State) string {
	text := fmt.Sprintf("%-8s", s)
	switch {
	case s == review.StateApproved:
		return p.Green(text)
	case s.Waits():
		return p.Yellow(text)
	}
	return p.Red(text)
}

// short returns the abbreviated id of a commit.
func (r reviewed) short() string { return fmt.Sprintf("%.12s", cmp.Or(r.Commit, r.Inner)) }

func (r reviewed) lines() string { return fmt.Sprintf("+%d -%d", r.Added, r.Removed) }

// printMore prints the lines below a commit.
func (r reviewed) printMore(out io.Writer, all []reviewed) {
	const indent = "       "
	for _, f := range r.Findings {
		fmt.Fprintf(out, "%s%s by %s: %s\n", indent, map[string]string{"hold": "held", "flag": "flagged"}[f.Action], f.Rule, f.Detail)
	}
	if names := namesOf(r.Needs, all); len(names) > 0 {
		fmt.Fprintf(out, "%sneeds %s\n", indent, strings.Join(names, ", "))
	}
	if r.Replaces != "" {
		fmt.Fprintf(out, "%sin the place of %.12s: git range-diff %.12s^! %.12s^!\n", indent, r.Replaces, r.Replaces, r.Commit)
	}
	if r.Reason != "" {
		fmt.Fprintf(out, "%s%s\n", indent, r.Reason)
	}
}

// namesOf returns the numbers and subjects of inner commits.
func namesOf(ids []gitops.OID, all []reviewed) []string {
	var names []string
	for _, id := range ids {
		name := fmt.Sprintf("%.12s", id)
		for _, r := range all {
			if r.Inner == id {
				name = r.short() + " (" + r.Subject + ")"
			}
		}
		names = append(names, name)
	}
	return names
}
