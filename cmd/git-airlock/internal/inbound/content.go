package inbound

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
	"github.com/git-airlock/git-airlock/snapshot/scan"
)

// ExcludeKey is the setting with patterns of files that never come into a workspace. It can have several values. Landed trees keep
// the user's versions of these files.
const ExcludeKey = "airlock.exclude"

// Excluded reads the patterns of excluded paths. kept are the settings that an airlock keeps.
func Excluded(ctx context.Context, repo *gitops.Repository, config gitops.Config, kept map[string]string) (ignore.Patterns, error) {
	if !config.With(kept).Has(ExcludeKey) {
		return nil, nil
	}
	settings, err := repo.Settings(ctx)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, s := range airlock.InForce(airlock.WithKept(settings, kept), ExcludeKey) {
		lines = append(lines, s.Value)
	}
	out, wrong, ok := ignore.ParseAll(lines)
	if !ok {
		return nil, &gitops.SettingError{Key: ExcludeKey, Value: wrong, Want: "a pattern as in gitignore(5)"}
	}
	return out, nil
}

// detectorOf passes the rules of the policy gate to the search, whose package may not import the gate.
func detectorOf(find func(path string, text []byte) []secrets.Match) scan.Detector {
	return func(path string, text []byte) []scan.Match {
		var found []scan.Match
		for _, m := range find(path, text) {
			found = append(found, scan.Match(m))
		}
		return found
	}
}
