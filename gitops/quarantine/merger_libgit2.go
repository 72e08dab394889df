//go:build libgit2

package quarantine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	git "github.com/libgit2/git2go/v34"

	"github.com/git-airlock/git-airlock/gitops"
)

// libgit2 merges trees in process. It detects no renames and merges lines by another algorithm than git. So it is
// used only for merges whose result cannot depend on either: nothing was removed, and no path was changed on both
// sides.
type libgit2 struct {
	repo *git.Repository
	dir  string
}

// withoutConfiguration keeps libgit2 from reading the user's and the system's configuration.
var withoutConfiguration = sync.OnceValue(func() error {
	var errs []error
	for _, level := range []git.ConfigLevel{git.ConfigLevelProgramdata, git.ConfigLevelSystem, git.ConfigLevelXDG, git.ConfigLevelGlobal} {
		errs = append(errs, git.SetSearchPath(level, ""))
	}
	return errors.Join(errs...)
})

// newMerger opens a repository that uses the bridge's store. It returns nil if libgit2 does not support that: with
// SHA-256, and with stores whose paths a file of alternates cannot contain, see gitrepository-layout(5).
func (b *Bridge) newMerger() (merger, error) {
	stores := b.stores()
	for _, store := range stores {
		if strings.ContainsRune(store, '\n') {
			return nil, nil
		}
	}
	if b.outer.Format != "sha1" {
		return nil, nil
	}
	if err := withoutConfiguration(); err != nil {
		return nil, err
	}
	dir := b.dir + ".libgit2"
	if err := os.RemoveAll(dir); err != nil { // from before a crash
		return nil, err
	}
	info := filepath.Join(b.dir, "info")
	alternates := []byte(strings.Join(stores, "\n") + "\n")
	err := errors.Join(os.MkdirAll(info, 0o700), os.WriteFile(filepath.Join(info, "alternates"), alternates, 0o600),
		os.MkdirAll(filepath.Join(dir, "refs"), 0o700), os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tbare = true\n"), 0o600),
		os.Symlink(b.dir, filepath.Join(dir, "objects")))
	if err != nil {
		return nil, err
	}
	repo, err := git.OpenRepository(dir)
	if err != nil {
		return nil, err
	}
	return &libgit2{repo, dir}, nil
}

func (l *libgit2) close() error {
	l.repo.Free()
	return os.RemoveAll(l.dir)
}

func (l *libgit2) merge(_ context.Context, m Merge) (gitops.OID, error) {
	var trees [3]*git.Tree
	for i, id := range []gitops.OID{m.Base, m.Ours, m.Theirs} {
		tree, err := l.tree(id)
		if err != nil {
			return "", err
		}
		defer tree.Free()
		trees[i] = tree
	}
	apart, err := l.disjoint(trees)
	if err != nil || !apart {
		return "", err
	}
	index, err := l.repo.MergeTrees(trees[0], trees[1], trees[2], &git.MergeOptions{})
	if err != nil {
		return "", err
	}
	defer index.Free()
	if index.HasConflicts() {
		return "", nil
	}
	id, err := index.WriteTreeTo(l.repo)
	if err != nil {
		return "", err
	}
	return gitops.OID(id.String()), nil
}

func (l *libgit2) tree(id gitops.OID) (*git.Tree, error) {
	oid, err := git.NewOid(string(id))
	if err != nil {
		return nil, err
	}
	return l.repo.LookupTree(oid)
}

// disjoint reports whether both sides removed nothing, and changed no path in common.
func (l *libgit2) disjoint(trees [3]*git.Tree) (bool, error) {
	ours, err := l.changed(trees[0], trees[1])
	if ours == nil || err != nil {
		return false, err
	}
	theirs, err := l.changed(trees[0], trees[2])
	if theirs == nil || err != nil {
		return false, err
	}
	for path := range theirs {
		if ours[path] {
			return false, nil
		}
	}
	return true, nil
}

// changed returns the set of paths that were added or changed between two trees, or nil if a path was removed or
// changed its type.
func (l *libgit2) changed(from, to *git.Tree) (map[string]bool, error) {
	diff, err := l.repo.DiffTreeToTree(from, to, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = diff.Free() }()
	n, err := diff.NumDeltas()
	if err != nil {
		return nil, err
	}
	paths := make(map[string]bool, n)
	for i := range n {
		delta, err := diff.Delta(i)
		if err != nil {
			return nil, err
		}
		if delta.Status != git.DeltaAdded && delta.Status != git.DeltaModified {
			return nil, nil
		}
		paths[delta.NewFile.Path] = true
	}
	return paths, nil
}
