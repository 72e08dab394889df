package session

import (
	"context"
	"fmt"
	"sync"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
	"github.com/git-airlock/git-airlock/snapshot/scan"
)

// Scan searches what a snapshot of the commit that is checked out would take in. It returns the commit with what was found.
func (s *Session) Scan(ctx context.Context) (gitops.Head, scan.Report, error) {
	head, err := s.base(ctx)
	if err != nil {
		return head, scan.Report{}, err
	}
	include, err := s.Environment().Include(ctx)
	if err != nil {
		return head, scan.Report{}, err
	}
	report, err := s.scan(ctx, head, scan.Scanner{Include: include})
	return head, report, err
}

// scan searches what a snapshot of a commit takes in, as the scanner says.
func (s *Session) scan(ctx context.Context, head gitops.Head, with scan.Scanner) (scan.Report, error) {
	var err error
	if with.Settings, err = scan.ReadSettings(ctx, s.Repo, s.Config); err != nil {
		return scan.Report{}, err
	}
	if with.Exclude, err = s.excluded(ctx); err != nil {
		return scan.Report{}, err
	}
	if with.Objects == nil && s.Config.Partial() { // all at once what would be fetched one by one
		if _, err := s.Repo.FetchPromised(ctx, head.Commit, ""); err != nil {
			return scan.Report{}, err
		}
	}
	step, end := s.Report.Begin("searching for secrets")
	defer end()
	with.Progress = func(done, all int) { step("searching for secrets", done, all) }
	with.Repo, with.Detect = s.Repo, detectorOf(secrets.Default().Find)
	return with.Tree(ctx, head.Tree)
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
func (s *Session) screen(ctx context.Context, head gitops.Head, include []gitops.UserFile, allow bool) *screening {
	go secrets.Default() // the rules are made ready meanwhile
	found := &screening{allow: allow}
	found.result = sync.OnceValues(func() (scan.Report, error) {
		return s.scan(ctx, head, scan.Scanner{Objects: found.objects, Include: include, Certain: detectorOf(secrets.Default().Certain), Guessing: guessAtStart})
	})
	return found
}

// begin searches the snapshot that was taken: what goes in is what was looked at, and is read from one pack, where the
// repository may have a file for each object.
func (s *screening) begin(taken *gitops.Quarantine) {
	s.objects = taken.Git
	go s.result() //nolint:errcheck // asked for again by who waits
}

// verdict waits for the end of the search, names what was found, once, and refuses what is high, unless that was allowed.
// A nil screening has nothing to say.
func (s *screening) verdict(report Reporter) error {
	if s == nil {
		return nil
	}
	found, err := s.result()
	if err != nil {
		return err
	}
	s.told.Do(func() { tellFindings(report, found) })
	if s.allow {
		return nil
	}
	return RefuseSecrets(found)
}

// tellFindings names what was found, the worst one by one.
func tellFindings(to Reporter, report scan.Report) {
	if report.Excluded > 0 {
		to.Say("%s left out of the snapshot (%s); landed commits keep yours", count(report.Excluded, "file"), ExcludeKey)
	}
	shown := 0
	for _, f := range report.Findings {
		if f.Severity == scan.High && f.Allowed == "" && shown < hintsShown {
			to.Say("%s: %s: %s", PlaceOfFinding(f), f.Rule, gitops.Escape(f.Reason))
			shown++
		}
	}
	if high, medium, low := report.Count(scan.High)-shown, report.Count(scan.Medium), report.Count(scan.Low); high+medium+low > 0 {
		more, orMore := "", ""
		if shown > 0 {
			more = " further"
		}
		if report.Cursory {
			orMore = " or more"
		}
		to.Say("possible%s secrets in the snapshot: %d high, %d medium, %d%s low (see: git airlock scan)", more, high, medium, low, orMore)
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

// hintsShown bounds the findings of a refusal that are named one by one.
const hintsShown = 5

// RefuseSecrets is the refusal of what is high, nil if nothing is.
func RefuseSecrets(r scan.Report) error {
	n := r.Count(scan.High)
	if n == 0 {
		return nil
	}
	refused := &environment.Refusal{Text: "a snapshot would take secrets in: " + count(n, "finding") + " of severity high"}
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
		refused.Next = append(refused.Next, "git config --add "+scan.AllowKey+" "+line)
	}
	refused.Next = append(refused.Next, "git airlock start --"+AllowSecretsFlag)
	return refused
}

// PlaceOfFinding returns the file of a finding, with the line if there is one.
func PlaceOfFinding(f scan.Finding) string {
	if f.Line == 0 {
		return gitops.Escape(f.Path)
	}
	return fmt.Sprintf("%s:%d", gitops.Escape(f.Path), f.Line)
}

// AllowSecretsFlag is the option that sets [Request.AllowSecrets], as hints name it.
const AllowSecretsFlag = "allow-secrets"

// ExcludeKey is the setting, given any number of times, of what is left out of snapshots. Landed trees keep it.
const ExcludeKey = "airlock.exclude"

// excluded reads what is left out of a snapshot.
func (s *Session) excluded(ctx context.Context) (gitops.Patterns, error) {
	if !s.Config.Has(ExcludeKey) {
		return nil, nil
	}
	lines, err := s.Repo.Values(ctx, ExcludeKey)
	if err != nil {
		return nil, err
	}
	out, wrong, ok := gitops.ParsePatterns(lines)
	if !ok {
		return nil, &promote.SettingError{Key: ExcludeKey, Value: wrong, Want: "a pattern as in gitignore(5)"}
	}
	return out, nil
}
