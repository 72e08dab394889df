package gitops

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"
)

// fetchTime limits the time for fetching promised objects.
const fetchTime = time.Minute

// Partial reports whether a repository with this configuration is a partial clone: a remote only promises some of its objects (partialclone in
// git's technical documentation).
func (c Config) Partial() bool {
	return c["extensions.partialclone"] != "" || slices.ContainsFunc(c.Keys(), func(key string) bool {
		return strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".promisor")
	})
}

// FetchPromised fetches promised objects of a commit's tree, except those that are also in the tree of the commit
// except, if there is one. It reports whether the repository can have such objects.
func (r *Repository) FetchPromised(ctx context.Context, commit, except OID) (bool, error) {
	config, err := r.Config(ctx)
	if err != nil || !config.Partial() {
		return false, err
	}
	revs := string(commit) + "^{tree}\n"
	if except != "" {
		revs += "^" + string(except) + "^{tree}\n"
	}
	// pack-objects needs all objects, and fetches the missing ones in a single request.
	return true, r.With("GIT_NO_LAZY_FETCH=0").Look(ctx, Call{
		Args:  []string{"pack-objects", "-q", "--revs", "--stdout", "--window=0"},
		Stdin: strings.NewReader(revs), Stdout: io.Discard, For: fetchTime,
	})
}
