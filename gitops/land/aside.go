package land

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	Worktrees []string // those of them that are other worktrees of this repository
	Emptied   []string // submodules that need an empty folder: other repositories after they are moved, and missing ones
}

// FindUnstashable returns which of the paths git stash does not save unchanged.
func FindUnstashable(ctx context.Context, r *gitops.Repository, paths []string) (s Unstashable, err error) {
	for _, p := range paths {
		if notStored(r, p) {
			s.NotStored = append(s.NotStored, p)
		}
		if worktree(r, p) {
			s.Worktrees = append(s.Worktrees, p)
		}
	}
	records, err := r.Records(ctx, gitops.Call{Args: append([]string{"ls-files", "-v", "-s", "-z", "--"}, paths...)})
	if err != nil {
		return s, err
	}
	for _, record := range records {
		// The tag is S for skip-worktree, and in lower case for assume-unchanged.
		entry, name, _ := strings.Cut(record, "\t")
		tag, entry, _ := strings.Cut(entry, " ")
		if strings.HasPrefix(entry, gitops.ModeGitlink.String()+" ") && (slices.Contains(s.NotStored, name) || !r.There(name)) {
			s.Emptied = append(s.Emptied, name)
		}
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

// worktree reports whether a folder is another worktree of a repository.
func worktree(r *gitops.Repository, path string) bool {
	info, err := r.Lstat(filepath.Join(path, ".git"))
	if err != nil || !info.Mode().IsRegular() || info.Size() > pathLimit {
		return false
	}
	content, err := os.ReadFile(filepath.Join(r.Top, path, ".git"))
	return err == nil && strings.HasPrefix(string(content), "gitdir: "+filepath.Join(r.CommonDir, "worktrees")+"/")
}

// pathLimit bounds the file that names the directory of a worktree.
const pathLimit = 8 << 10

// Repository reports whether a path is the folder of another repository.
func Repository(r *gitops.Repository, path string) bool {
	return r.There(filepath.Join(path, ".git")) || bare(r, path)
}

func notStored(r *gitops.Repository, path string) bool {
	info, err := r.Lstat(path)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0
	}
	entries, err := os.ReadDir(filepath.Join(r.Top, path))
	return err == nil && len(entries) == 0 || Repository(r, path)
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
