package land

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Stubborn are paths that git stash does not put aside as they are.
type Stubborn struct {
	Skipped  []string // skip-worktree, in the index
	Assumed  []string // assume-unchanged
	Intended []string // in the index without content (git add -N)
	Strange  []string // what git keeps nothing of: neither file nor link, a folder with nothing in it, another repository
}

// FindStubborn returns those of some paths.
func FindStubborn(ctx context.Context, r *gitops.Repository, paths []string) (s Stubborn, err error) {
	for _, p := range paths {
		if strange(r, p) {
			s.Strange = append(s.Strange, p)
		}
	}
	records, err := r.Records(ctx, gitops.Call{Args: append([]string{"ls-files", "-v", "-z", "--"}, paths...)})
	if err != nil {
		return s, err
	}
	for _, record := range records {
		// The tag is S for what is skipped, in lower case for what is assumed to be unchanged.
		tag, name, _ := strings.Cut(record, " ")
		if strings.EqualFold(tag, "S") {
			s.Skipped = append(s.Skipped, name)
		}
		if tag != strings.ToUpper(tag) {
			s.Assumed = append(s.Assumed, name)
		}
	}
	s.Intended, err = r.Records(ctx, gitops.Call{Args: append([]string{"diff-files", "--name-only", "-z", "--diff-filter=A", "--"}, paths...)})
	return s, err
}

func strange(r *gitops.Repository, path string) bool {
	info, err := r.Lstat(path)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0
	}
	full := filepath.Join(r.Top, path)
	entries, err := os.ReadDir(full)
	_, repository := os.Lstat(filepath.Join(full, ".git"))
	return err == nil && len(entries) == 0 || repository == nil
}
