package gitops

import (
	"context"
	"io"
	"strings"
	"time"
)

// fetchTime bounds a fetch of what is promised.
const fetchTime = time.Minute

// partial tells whether a remote only promises some of the repository's objects (partialclone in git's technical
// documentation).
func (r *Repository) partial(ctx context.Context) (bool, error) {
	config, err := r.Config(ctx)
	if err != nil || config["extensions.partialclone"] != "" {
		return err == nil, err
	}
	for key := range config {
		if strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".promisor") {
			return true, nil
		}
	}
	return false, nil
}

// FetchPromised fetches what the tree of a commit has, and that of another has not, as far as it is only promised. It
// tells whether there can be such objects.
func (r *Repository) FetchPromised(ctx context.Context, commit, besides OID) (bool, error) {
	partial, err := r.partial(ctx)
	if err != nil || !partial {
		return false, err
	}
	// Whoever packs objects has to have them, and git fetches them all at once then.
	return true, r.with("GIT_NO_LAZY_FETCH=0").Look(ctx, Call{
		Args:  []string{"pack-objects", "-q", "--revs", "--stdout", "--window=0"},
		Stdin: strings.NewReader(string(commit) + "^{tree}\n^" + string(besides) + "^{tree}\n"), Stdout: io.Discard, For: fetchTime,
	})
}
