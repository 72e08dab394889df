package inbound

import (
	"context"
	"fmt"
	"sync"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
	"github.com/git-airlock/git-airlock/snapshot/scan"
	"github.com/git-airlock/git-airlock/words"
)

// Scan searches the files of a commit's snapshot with a scanner.
func Scan(ctx context.Context, env environment.Builder, head gitops.Head, with scan.Scanner) (scan.Report, error) {
	var err error
	if with.Settings, err = scan.ReadSettings(ctx, env.Repo, env.Config); err != nil {
		return scan.Report{}, err
	}
	if with.Exclude, err = Excluded(ctx, env.Repo, env.Config, nil); err != nil {
		return scan.Report{}, err
	}
	if with.Objects == nil && env.Config.Partial() { // fetch all objects at once instead of one by one
		if _, err := env.Repo.FetchPromised(ctx, head.Commit, ""); err != nil {
			return scan.Report{}, err
		}
	}
	step, end := env.Report.Begin("searching for secrets")
	defer end()
	with.Progress = func(done, all int) { step("searching for secrets", done, all) }
	with.Repo, with.Detect = env.Repo, detectorOf(secrets.Default().Find)
	return with.Tree(ctx, head.Tree)
}

// guessAtStart bounds the text in which start searches for values that only look like passwords. Start never refuses such values, and
// most repositories have less text.
const guessAtStart = 16 << 20

// Screening is the search for secrets in the files of a new airlock.
type Screening struct {
	result  func() (scan.Report, error)
	objects *gitops.Git // the source of the files; nil for the repository
	allow   bool
	told    sync.Once
}

// Screen prepares the search of a start. The search begins with a call of Finish or [Screening.Begin].
func Screen(ctx context.Context, env environment.Builder, head gitops.Head, include []inner.UserFile, allow bool) *Screening {
	go secrets.Default() // prepares the rules in the background
	found := &Screening{allow: allow}
	found.result = sync.OnceValues(func() (scan.Report, error) {
		return Scan(ctx, env, head, scan.Scanner{Objects: found.objects, Include: include, Certain: detectorOf(secrets.Default().Certain), Guessing: guessAtStart})
	})
	return found
}

// Begin searches the finished snapshot, which has exactly the files of the workspace. It has them in one pack, which is faster to read
// than loose objects of the repository.
func (s *Screening) Begin(taken *quarantine.Store) {
	s.objects = taken.Git
	go s.result() //nolint:errcheck // a later call returns the same error
}

// Finish waits for the end of the search, prints the findings, once, and refuses those of severity high, unless secrets are
// allowed. A nil Screening has no findings.
func (s *Screening) Finish(report environment.Reporter) error {
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

// tellFindings prints the findings: the worst one by one, and the numbers of the others.
func tellFindings(to environment.Reporter, report scan.Report) {
	if report.Excluded > 0 {
		to.Say("%s left out of the snapshot (%s); landed commits keep your files", words.Count(report.Excluded, "file"), ExcludeKey)
	}
	shown := 0
	for _, f := range report.Findings {
		if f.Severity == scan.High && f.Allowed == "" && shown < hintsShown {
			to.Say("%s: %s: %s", PlaceOfFinding(f), f.Rule, gitops.Text(f.Reason))
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

// hintsShown bounds the findings with a hint of their own in a refusal.
const hintsShown = 5

// RefuseSecrets returns the refusal for findings of severity high, nil if there are none.
func RefuseSecrets(r scan.Report) error {
	n := r.Count(scan.High)
	if n == 0 {
		return nil
	}
	refused := &environment.Refusal{Text: "the snapshot would contain secrets: " + words.Count(n, "finding") + " of severity high"}
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

// PlaceOfFinding returns the file of a finding, with its line if there is one.
func PlaceOfFinding(f scan.Finding) string {
	if f.Line == 0 {
		return gitops.Text(f.Path).String()
	}
	return fmt.Sprintf("%s:%d", gitops.Text(f.Path), f.Line)
}

// AllowSecretsFlag is the option of start that allows secrets in the snapshot. Hints name it.
const AllowSecretsFlag = "allow-secrets"
