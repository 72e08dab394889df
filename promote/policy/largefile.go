package policy

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

// largeFile looks for files that would stay in everyone's clone for ever.
type largeFile struct{ limit int64 }

func (largeFile) describe() Description {
	return documented("large-file", Hold, "a file larger than "+maxFileSizeKey+" (50m)")
}

func (l largeFile) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	f, err := in.read(ctx, c)
	if err == nil && f.size > l.limit {
		r.at(c.Path, "%d bytes, more than %s allows (%d)", f.size, maxFileSizeKey, l.limit)
	}
	return err
}

func (largeFile) commit(context.Context, *inspection, *report) error { return nil }
