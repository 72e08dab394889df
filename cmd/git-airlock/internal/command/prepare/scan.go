package prepare

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/inbound"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/snapshot/scan"
	"github.com/git-airlock/git-airlock/words"
)

func scanCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "scan", Usage: "search for secrets in the files that a snapshot would contain",
		UsageText: "git airlock scan [--json]",
		Description: "Searches the committed files of the checked-out branch. \"start\" makes the same search, and refuses if a finding has severity\n" +
			"high. Allow a finding with git config --add " + scan.AllowKey + " \"RULE:PATTERN # REASON\". Search for secrets of your own\n" +
			"kind with " + scan.PatternKey + " \"high NAME EXPRESSION\" and " + scan.FileKey + " \"high NAME PATTERN\".\n" +
			"Exit status 3 if a finding has severity high and is not allowed.",
		Flags: []cli.Flag{cmdline.JSONFlag},
		Action: cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
			head, report, err := search(c.Context, s)
			if err != nil {
				return err
			}
			d := scanned(head, report)
			if err := cmdline.Print(c, s, true, d, d.print); err != nil {
				return err
			}
			return inbound.RefuseSecrets(report)
		}),
	}, cmdline.Takes{})
}

// search searches the files that a snapshot of the checked-out commit would contain. It returns the commit and the findings.
func search(ctx context.Context, s *session.Session) (gitops.Head, scan.Report, error) {
	head, err := inbound.Base(ctx, s.Repo, s.Config)
	if err != nil {
		return head, scan.Report{}, err
	}
	env := s.Environment()
	include, err := env.Include(ctx)
	if err != nil {
		return head, scan.Report{}, err
	}
	report, err := inbound.Scan(ctx, env, head, scan.Scanner{Include: include})
	return head, report, err
}

// archivesShown bounds the archives in the text, because some repositories have many.
const archivesShown = 5

// scanDocument is version 1 of scan --json.
type scanDocument struct {
	Version  int             `json:"version"`
	Commit   gitops.OID      `json:"commit"`
	Files    int             `json:"files"`
	Excluded int             `json:"excluded"` // files that airlock.exclude leaves out
	Bytes    int64           `json:"bytes"`
	High     int             `json:"high"` // these three numbers do not count allowed findings
	Medium   int             `json:"medium"`
	Low      int             `json:"low"`
	Allowed  int             `json:"allowed"`
	Partial  []string        `json:"partial"`  // files of which only the first part was searched
	Archives []string        `json:"archives"` // archives, which were not searched
	Findings []findingRecord `json:"findings"`
}

type findingRecord struct {
	Severity  scan.Severity `json:"severity"`
	Path      string        `json:"path"`
	Line      int           `json:"line"` // 0: the file as such
	Rule      string        `json:"rule"`
	Reason    string        `json:"reason"`
	Ignored   bool          `json:"ignored"`   // an ignore file names it
	Committed bool          `json:"committed"` // false: it goes in by .worktreeinclude
	Allowed   *string       `json:"allowed"`   // the reason, null if it is not allowed
}

func scanned(head gitops.Head, r scan.Report) scanDocument {
	d := scanDocument{Version: ui.DocumentVersion, Commit: head.Commit, Files: r.Files, Excluded: r.Excluded, Bytes: r.Bytes, High: r.Count(scan.High),
		Medium: r.Count(scan.Medium), Low: r.Count(scan.Low), Allowed: r.Allowed(), Partial: gitops.Escaped(r.Partial), Archives: gitops.Escaped(r.Archives)}
	for _, f := range r.Findings {
		record := findingRecord{Severity: f.Severity, Path: gitops.Text(f.Path).String(), Line: f.Line, Rule: f.Rule, Reason: gitops.Text(f.Reason).String(), Ignored: f.Ignored, Committed: !f.Loose}
		if f.Allowed != "" {
			why := gitops.Text(f.Allowed).String()
			record.Allowed = &why
		}
		d.Findings = append(d.Findings, record)
	}
	return d
}

func (d scanDocument) print(out io.Writer, p ui.Paint) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range d.Findings {
		reason := gitops.Text(f.Reason)
		if f.Ignored {
			reason += ", though an ignore file names it"
		}
		word := severityIn(p, f.Severity)
		if f.Allowed != nil {
			word, reason = p.Green("allowed"), gitops.Text(*f.Allowed)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", word, inbound.PlaceOfFinding(scan.Finding{Path: f.Path, Line: f.Line}), f.Rule, reason)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range d.Partial {
		fmt.Fprintf(out, "partial  %s: only the first part of the file was searched\n", p)
	}
	for _, p := range d.Archives[:min(len(d.Archives), archivesShown)] {
		fmt.Fprintf(out, "archive  %s: not looked into\n", p)
	}
	if more := len(d.Archives) - archivesShown; more > 0 {
		fmt.Fprintf(out, "archive  %d more: not looked into\n", more)
	}
	if d.Excluded > 0 {
		fmt.Fprintf(out, "%s left out (%s)\n", words.Count(d.Excluded, "file"), inbound.ExcludeKey)
	}
	_, err := fmt.Fprintf(out, "%s searched: %d high, %d medium, %d low, %d allowed\n", words.Count(d.Files, "file"), d.High, d.Medium, d.Low, d.Allowed)
	return err
}

// severityIn returns a severity in its colour. All colour sequences have the same length, because tabwriter counts them.
func severityIn(p ui.Paint, s scan.Severity) string {
	switch s {
	case scan.High:
		return p.Red(s.String())
	case scan.Medium:
		return p.Yellow(s.String())
	}
	return p.In("39", s.String()) // the terminal's default colour
}
