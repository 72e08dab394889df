package land

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Unstashable lists paths that git stash does not save unchanged.
type Unstashable struct {
	Skipped  []string // skip-worktree, in the index
	Assumed  []string // assume-unchanged
	Intended []string // in the index without content (git add -N)
	// what git does not store: anything but a file or link, a folder without files, another repository
	NotStored []string
}

// FindUnstashable returns which of the paths git stash does not save unchanged.
func FindUnstashable(ctx context.Context, r *gitops.Repository, paths []string) (s Unstashable, err error) {
	for _, p := range paths {
		if notStored(r, p) {
			s.NotStored = append(s.NotStored, p)
		}
	}
	records, err := r.Records(ctx, gitops.Call{Args: append([]string{"ls-files", "-v", "-z", "--"}, paths...)})
	if err != nil {
		return s, err
	}
	for _, record := range records {
		// The tag is S for skip-worktree, and in lower case for assume-unchanged.
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

func notStored(r *gitops.Repository, path string) bool {
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

// FreeName returns a name beside a path that no file has yet.
func FreeName(top, path string) string {
	name := path + ".mine"
	for n := 2; ; n++ {
		if _, err := os.Lstat(filepath.Join(top, name)); err != nil {
			return name
		}
		name = fmt.Sprintf("%s.mine%d", path, n)
	}
}
