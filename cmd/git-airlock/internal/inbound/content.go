package inbound

import (
	"context"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
	"github.com/git-airlock/git-airlock/snapshot/scan"
)

// ExcludeKey is the setting with patterns of files that never come into a workspace. It can have several values. Landed trees keep
// the user's versions of these files.
const ExcludeKey = "airlock.exclude"

// Excluded reads the patterns of excluded paths. fixed are the settings that an airlock was started with: they have one value, with
// a pattern on each line.
func Excluded(ctx context.Context, repo *gitops.Repository, config gitops.Config, fixed map[string]string) (ignore.Patterns, error) {
	kept := fixed[ExcludeKey]
	if kept == "" && !config.Has(ExcludeKey) {
		return nil, nil
	}
	lines, err := repo.Values(ctx, ExcludeKey)
	if err != nil {
		return nil, err
	}
	if kept != "" {
		lines = append(lines, strings.Split(kept, "\n")...)
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
