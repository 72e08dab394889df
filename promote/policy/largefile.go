package policy

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

// largeFile finds files that would stay in everyone's clone for ever.
type largeFile struct {
	limit int64
	from  Source // the source of the limit
}

const largeFileID = "large-file"

func (l largeFile) description() Description {
	if l.from == fromTeam {
		return documented(largeFileID, Hold, "a file larger than "+SizeText(l.limit)+" (team)")
	}
	return documented(largeFileID, Hold, "a file larger than "+maxFileSizeKey+" ("+SizeText(l.limit)+")")
}

func (l largeFile) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	f, err := in.read(ctx, c)
	if err == nil && f.size > l.limit {
		by := maxFileSizeKey
		if l.from == fromTeam { // the user's own setting would not change it
			by = "the team's policy"
		}
		r.at(c.Path, "%d bytes, more than %s allows (%d)", f.size, by, l.limit)
	}
	return err
}
