package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
	"github.com/git-airlock/git-airlock/snapshot/scan"
)

func scanCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "scan", Usage: "look for secrets in what a snapshot would take in",
		UsageText: "git airlock scan [--json]",
		Description: "Searches the files of the checked-out commit, as \"start\" does, which refuses if a finding is high. What may stay is\n" +
			"allowed, with a reason: git config --add " + scan.AllowKey + " \"RULE:PATTERN # REASON\". Patterns of your own:\n" +
			scan.PatternKey + " \"high NAME EXPRESSION\", " + scan.FileKey + " \"high NAME PATTERN\".\n" +
			"Exit status 3 if a finding is high and not allowed.",
		Flags: []cli.Flag{jsonFlag},
		Action: inRepository(func(c *cli.Context, a *app) error {
			head, err := a.base(c.Context)
			if err != nil {
				return err
			}
			loose, err := a.included(c.Context)
			if err != nil {
				return err
			}
			report, err := a.scan(c.Context, head, scan.Scanner{Include: loose})
			if err != nil {
				return err
			}
			d := scanned(head, report)
			if c.Bool(jsonFlag.Name) {
				err = ui.PrintJSON(a.out, d)
			} else {
				err = a.show(c.Context, "scan", true, d.print)
			}
			if err != nil {
				return err
			}
			return refuseSecrets(report)
		}),
	}, inside, false)
}

// scan searches what a snapshot of a commit takes in, as the scanner says.
func (a *app) scan(ctx context.Context, head gitops.Head, s scan.Scanner) (scan.Report, error) {
	var err error
	if s.Settings, err = scan.ReadSettings(ctx, a.repo, a.config); err != nil {
		return scan.Report{}, err
	}
	if s.Exclude, err = a.excluded(ctx); err != nil {
		return scan.Report{}, err
	}
	if s.Objects == nil && a.config.Partial() { // all at once what would be fetched one by one
		if _, err := a.repo.FetchPromised(ctx, head.Commit, ""); err != nil {
			return scan.Report{}, err
		}
	}
	var done func()
	s.Progress, done = ui.CountedProgress("searching for secrets")
	defer done()
	s.Repo, s.Detect = a.repo, detectorOf(secrets.Default().Find)
	return s.Tree(ctx, head.Tree)
}

// guessAtStart bounds the text that a start searches for what only looks like a password, which is never refused: most
// repositories are smaller.
const guessAtStart = 16 << 20

// screening is the search of what a new airlock takes in.
type screening struct {
	result  func() (scan.Report, error)
	objects *gitops.Git // what the files are read from; nil: the repository
	allow   bool
	told    sync.Once
}

// screen prepares to search what a start takes in, which begins when somebody asks for the verdict, or with [screening.begin].
func (a *app) screen(ctx context.Context, head gitops.Head, loose []gitops.UserFile, allow bool) *screening {
	go secrets.Default() // the rules are made ready meanwhile
	s := &screening{allow: allow}
	s.result = sync.OnceValues(func() (scan.Report, error) {
		return a.scan(ctx, head, scan.Scanner{Objects: s.objects, Include: loose, Certain: detectorOf(secrets.Default().Certain), Guessing: guessAtStart})
	})
	return s
}

// begin searches the snapshot that was taken: what goes in is what was looked at, and is read from one pack, where the
// repository may have a file for each object.
func (s *screening) begin(taken *gitops.Quarantine) {
	s.objects = taken.Git
	go s.result() //nolint:errcheck // asked for again by who waits
}

// verdict waits for the end of the search, names what was found, once, and refuses what is high, unless that was allowed.
// A nil screening has nothing to say.
func (s *screening) verdict(w io.Writer) error {
	if s == nil {
		return nil
	}
	report, err := s.result()
	if err != nil {
		return err
	}
	s.told.Do(func() { tell(w, report) })
	if s.allow {
		return nil
	}
	return refuseSecrets(report)
}

// tell names what was found, the worst one by one.
func tell(w io.Writer, report scan.Report) {
	if report.Excluded > 0 {
		ui.Say(w, "%s left out of the snapshot (%s); landed commits keep yours", ui.Count(report.Excluded, "file"), excludeKey)
	}
	shown := 0
	for _, f := range report.Findings {
		if f.Severity == scan.High && f.Allowed == "" && shown < hintsShown {
			ui.Say(w, "%s: %s: %s", placeOfFinding(f), f.Rule, gitops.Escape(f.Reason))
			shown++
		}
	}
	if high, medium, low := report.Count(scan.High)-shown, report.Count(scan.Medium), report.Count(scan.Low); high+medium+low > 0 {
		more, orMore := "", ""
		if shown > 0 {
			more = " more"
		}
		if report.Cursory {
			orMore = " or more"
		}
		ui.Say(w, "what may be%s secrets inside: %d high, %d medium, %d%s low: git airlock scan", more, high, medium, low, orMore)
	}
}

// detectorOf lends the rules of the policy gate to the search, which knows of no gate.
func detectorOf(find func(path string, text []byte) []secrets.Match) scan.Detector {
	return func(path string, text []byte) []scan.Match {
		var found []scan.Match
		for _, m := range find(path, text) {
			found = append(found, scan.Match(m))
		}
		return found
	}
}

// allowSecretsFlag lets start take in what it would refuse.
var allowSecretsFlag = &cli.BoolFlag{Name: "allow-secrets", Usage: "take a snapshot although there are secrets in it"}

// archivesShown bounds the archives that are named to people: some repositories are full of them.
const archivesShown = 5

// hintsShown bounds the findings of a refusal that are named one by one.
const hintsShown = 5

// refuseSecrets is the refusal of what is high, nil if nothing is.
func refuseSecrets(r scan.Report) error {
	n := r.Count(scan.High)
	if n == 0 {
		return nil
	}
	refused := &refusal{text: "a snapshot would take secrets in: " + ui.Count(n, "finding") + " of severity high"}
	lines := map[string]bool{}
	for _, f := range r.Findings {
		line := gitops.Pasteable(scan.AllowanceFor(f) + "why it may be there")
		if f.Severity != scan.High || f.Allowed != "" || lines[line] {
			continue
		}
		if len(lines) == hintsShown {
			break
		}
		lines[line] = true
		refused.hints = append(refused.hints, "git config --add "+scan.AllowKey+" "+line)
	}
	refused.hints = append(refused.hints, "git airlock start --"+allowSecretsFlag.Name)
	return refused
}

func placeOfFinding(f scan.Finding) string {
	if f.Line == 0 {
		return gitops.Escape(f.Path)
	}
	return fmt.Sprintf("%s:%d", gitops.Escape(f.Path), f.Line)
}

// scanDocument is version 1 of what scan --json prints.
type scanDocument struct {
	Version  int             `json:"version"`
	Commit   gitops.OID      `json:"commit"`
	Files    int             `json:"files"`
	Excluded int             `json:"excluded"` // files that airlock.exclude leaves out
	Bytes    int64           `json:"bytes"`
	High     int             `json:"high"` // of these three what is allowed is not counted
	Medium   int             `json:"medium"`
	Low      int             `json:"low"`
	Allowed  int             `json:"allowed"`
	Partial  []string        `json:"partial"`  // only the first part of these was searched
	Archives []string        `json:"archives"` // these were not looked into
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
	Allowed   *string       `json:"allowed"`   // why, null if it is not
}

func scanned(head gitops.Head, r scan.Report) scanDocument {
	d := scanDocument{Version: ui.DocumentVersion, Commit: head.Commit, Files: r.Files, Excluded: r.Excluded, Bytes: r.Bytes, High: r.Count(scan.High),
		Medium: r.Count(scan.Medium), Low: r.Count(scan.Low), Allowed: r.Allowed(), Partial: escaped(r.Partial), Archives: escaped(r.Archives), Findings: []findingRecord{}}
	for _, f := range r.Findings {
		record := findingRecord{Severity: f.Severity, Path: gitops.Escape(f.Path), Line: f.Line, Rule: f.Rule, Reason: gitops.Escape(f.Reason), Ignored: f.Ignored, Committed: !f.Loose}
		if f.Allowed != "" {
			why := gitops.Escape(f.Allowed)
			record.Allowed = &why
		}
		d.Findings = append(d.Findings, record)
	}
	return d
}

// escaped are paths as they can be shown, never nil.
func escaped(paths []string) []string {
	shown := make([]string, len(paths))
	for i, path := range paths {
		shown[i] = gitops.Escape(path)
	}
	return shown
}

// print shows a document to people.
func (d scanDocument) print(out io.Writer, p ui.Paint) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range d.Findings {
		reason := gitops.Escape(f.Reason)
		if f.Ignored {
			reason += ", though an ignore file names it"
		}
		word := severityIn(p, f.Severity)
		if f.Allowed != nil {
			word, reason = p.Green("allowed"), gitops.Escape(*f.Allowed)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", word, placeOfFinding(scan.Finding{Path: f.Path, Line: f.Line}), f.Rule, reason)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range d.Partial {
		fmt.Fprintf(out, "partial  %s: only its first part was searched\n", p)
	}
	for _, p := range d.Archives[:min(len(d.Archives), archivesShown)] {
		fmt.Fprintf(out, "archive  %s: not looked into\n", p)
	}
	if more := len(d.Archives) - archivesShown; more > 0 {
		fmt.Fprintf(out, "archive  %d more: not looked into\n", more)
	}
	if d.Excluded > 0 {
		fmt.Fprintf(out, "%s left out (%s)\n", ui.Count(d.Excluded, "file"), excludeKey)
	}
	_, err := fmt.Fprintf(out, "%s searched: %d high, %d medium, %d low, %d allowed\n", ui.Count(d.Files, "file"), d.High, d.Medium, d.Low, d.Allowed)
	return err
}

// severityIn is a severity in its colour. All colours take the same room, which a table counts.
func severityIn(p ui.Paint, s scan.Severity) string {
	switch s {
	case scan.High:
		return p.Red(s.String())
	case scan.Medium:
		return p.Yellow(s.String())
	}
	return p.In("39", s.String()) // the terminal's own
}
