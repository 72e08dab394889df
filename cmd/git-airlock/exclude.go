package main

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
)

// excludeKey is the setting, given any number of times, of what is left out of snapshots. Landed trees keep it.
const excludeKey = "airlock.exclude"

// excluded reads what is left out of a snapshot.
func (a *app) excluded(ctx context.Context) (gitops.Patterns, error) {
	lines, err := a.repo.Values(ctx, excludeKey)
	if err != nil {
		return nil, err
	}
	out, wrong, ok := gitops.ParsePatterns(lines)
	if !ok {
		return nil, &promote.SettingError{Key: excludeKey, Value: wrong, Want: "a pattern as in gitignore(5)"}
	}
	return out, nil
}
