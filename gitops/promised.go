package gitops

import (
	"context"
	"io"
	"strings"
	"time"
)

// fetchTime bounds a fetch of what is promised.
const fetchTime = time.Minute

// partial reports whether a remote only promises some of the repository's objects (partialclone in git's technical
// documentation).
func (r *Repository) partial(ctx context.Context) (bool, error) {
	config, err := r.Config(ctx)
	return err == nil && config.Partial(), err
}

// Partial tells the same of the repository that the configuration is of.
func (c Config) Partial() bool {
	for _, key := range c.Keys() {
		if strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".promisor") {
			return true
		}
	}
	return c["extensions.partialclone"] != ""
}

// FetchPromised fetches what the tree of a commit has, and that of another, if there is one, has not, as far as it is only
// promised. It reports whether there can be such objects.
func (r *Repository) FetchPromised(ctx context.Context, commit, besides OID) (bool, error) {
	partial, err := r.partial(ctx)
	if err != nil || !partial {
		return false, err
	}
	revs := string(commit) + "^{tree}\n"
	if besides != "" {
		revs += "^" + string(besides) + "^{tree}\n"
	}
	// Whoever packs objects has to have them, and git fetches them all at once then.
	return true, r.With("GIT_NO_LAZY_FETCH=0").Look(ctx, Call{
		Args:  []string{"pack-objects", "-q", "--revs", "--stdout", "--window=0"},
		Stdin: strings.NewReader(revs), Stdout: io.Discard, For: fetchTime,
	})
}
