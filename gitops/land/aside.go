package land

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/far"
)

// Unstashable lists paths that git stash does not save unchanged, and the rest.
type Unstashable struct {
	// Moved lists what must be renamed, because git stash does not store it: anything but a file or link, a folder without files,
	// another repository, a link or file in place of a folder above a path, and files outside of a sparse checkout.
	Moved     []string
	Worktrees []string // those of them that are other worktrees of this repository
	Emptied   []string // submodules that need an empty folder: other repositories after they are moved, and missing ones
	Unindexed []string // without an entry in the index that git stash accepts, although HEAD has them or they have conflicts
	Outside   []string // those moved files that are in the index, or in HEAD, and outside of a sparse checkout
	Skipped   []string // skip-worktree, in the index
	Assumed   []string // assume-unchanged
	Intended  []string // in the index without content (git add -N)
	Deleted   []string // in the index only, so that git stash needs the files back
	Rest      []string // git stash saves these after the others are dealt with
	Sparse    bool     // git stash refuses some of the rest unless it is told that the checkout is not sparse
}

// FindUnstashable returns which of the paths git stash does not save unchanged.
func FindUnstashable(ctx context.Context, r *gitops.Repository, paths []string) (s Unstashable, err error) {
	known, err := readKnown(ctx, r, paths)
	if err != nil {
		return Unstashable{Rest: paths}, err
	}
	moved := map[string]bool{}
	for _, p := range paths {
		move := inPlace(r, p, known)
		if move == "" && r.There(p) && known.outside(p) && !known.staged[p] {
			move = p
			if known.indexed[p] || known.removed[p] {
				s.Outside = append(s.Outside, p)
			}
		}
		if move != "" && !moved[move] {
			s.Moved = append(s.Moved, move)
			if worktree(r, move) {
				s.Worktrees = append(s.Worktrees, move)
			}
		}
		moved[move] = move != ""
		s.sort(p, move, known, r.There(p))
	}
	return s, nil
}

// sort adds a path to the lists for the index, and to the rest. move is what will be moved at the path or above it.
func (s *Unstashable) sort(p, move string, k known, there bool) {
	add := func(list *[]string, belongs bool) {
		if belongs {
			*list = append(*list, p)
		}
	}
	outside := slices.Contains(s.Outside, p)
	intended := k.intended[p] || k.added[p] && k.empty[p] && !there
	add(&s.Emptied, k.gitlink[p] && (move == p || !there))
	add(&s.Unindexed, k.removed[p] || k.conflict[p] || k.added[p] && k.folder[p])
	add(&s.Deleted, k.added[p] && !intended && !k.folder[p] && !k.gitlink[p] && (move != "" || !there))
	add(&s.Skipped, k.skipped[p] && !outside)
	add(&s.Assumed, k.assumed[p])
	add(&s.Intended, intended && !k.removed[p])
	tracked := k.indexed[p] && !intended || k.removed[p]
	if outside || k.gitlink[p] && (move == p || !there) || !tracked && (move != "" || !there) {
		return
	}
	s.Rest = append(s.Rest, p)
	s.Sparse = s.Sparse || k.outside(p)
}

// inPlace returns what must be moved because git stash does not store it: a path, or what is in the place of a folder above it.
func inPlace(r *gitops.Repository, name string, k known) string {
	for i, char := range name {
		if char != '/' {
			continue
		}
		info, err := r.Lstat(name[:i])
		if err != nil {
			return ""
		}
		if !info.IsDir() || !k.indexed[name] && !k.removed[name] && Repository(r, name[:i]) {
			return name[:i]
		}
	}
	if info, err := r.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 && k.folder[name] || notStored(r, name) {
		return name
	}
	return ""
}

// known is what the index and HEAD have at some paths.
type known struct {
	indexed, gitlink, skipped, assumed, intended gitops.Set[string]
	conflict, empty                              gitops.Set[string] // empty: the index has a file without content
	removed                                      gitops.Set[string] // HEAD has them, and the index does not
	staged, added                                gitops.Set[string] // the index differs from HEAD, and has them; HEAD does not have them
	folder                                       gitops.Set[string] // the index or HEAD has paths below them
	inside                                       gitops.Set[string] // in a sparse checkout; nil if the checkout is not sparse
}

func (k known) outside(p string) bool { return k.inside != nil && !k.inside[p] }

// readKnown reads the index without the rules of a sparse checkout. With them, git forgets the flag of each file that exists.
func readKnown(ctx context.Context, r *gitops.Repository, paths []string) (known, error) {
	k := known{}
	for _, set := range []*gitops.Set[string]{&k.indexed, &k.gitlink, &k.skipped, &k.assumed, &k.intended, &k.conflict, &k.empty, &k.removed, &k.staged, &k.added, &k.folder} {
		*set = gitops.Set[string]{}
	}
	within := func(name string) {
		for dir := path.Dir(name); dir != "." && !k.folder[dir]; dir = path.Dir(dir) {
			k.folder[dir] = true
		}
	}
	git := r.Configured("core.sparseCheckout=false")
	records, err := git.Records(ctx, call(paths, "ls-files", "-v", "-s", "-z"))
	if err != nil {
		return k, err
	}
	for _, record := range records {
		// The tag is S for skip-worktree, and in lower case for assume-unchanged.
		entry, name, _ := strings.Cut(record, "\t")
		tag, entry, _ := strings.Cut(entry, " ")
		k.gitlink[name] = strings.HasPrefix(entry, gitops.ModeGitlink.String()+" ")
		k.skipped[name] = strings.EqualFold(tag, "S")
		k.assumed[name] = tag != strings.ToUpper(tag)
		k.empty[name] = strings.Contains(entry, " e69de29bb2d1d643") || strings.Contains(entry, " 473a0f4c3be8a936") // in SHA-1 and SHA-256
		stage := entry[len(entry)-1:]
		k.conflict[name] = stage != "0"
		k.indexed[name] = k.indexed[name] || stage == "0" || stage == "2" // 2 is HEAD's
		within(name)
	}
	if records, err = git.Records(ctx, call(paths, "diff-index", "--cached", "--name-status", "-z", "--no-renames", "--ignore-submodules=none", "HEAD")); err != nil {
		return k, err
	}
	for i := 0; i+1 < len(records); i += 2 {
		name, status := records[i+1], records[i]
		k.removed[name], k.added[name], k.staged[name] = status == "D", status == "A", status != "D"
		within(name)
	}
	if records, err = git.Records(ctx, call(paths, "diff-files", "--name-only", "-z", "--diff-filter=A")); err != nil {
		return k, err
	}
	k.intended.Add(records...)
	k.inside, err = inSparse(ctx, r, paths)
	return k, err
}

// inSparse returns those of the paths that are in a sparse checkout, whose rules have the form of an exclude file. They are nil if
// the checkout is not sparse.
func inSparse(ctx context.Context, r *gitops.Repository, paths []string) (map[string]bool, error) {
	settings, err := r.Settings(ctx)
	if err != nil {
		return nil, err
	}
	rules := filepath.Join(r.GitDir, "info/sparse-checkout")
	if sparse, err := gitops.ConfigOf(settings).Bool("core.sparseCheckout", false); err != nil || !sparse || !fileThere(rules) {
		return nil, err
	}
	inside := gitops.Set[string]{}
	for _, kind := range []string{"-c", "-o"} {
		names, err := r.Records(ctx, call(paths, "ls-files", kind, "-i", "-z", "--exclude-from="+rules))
		if err != nil {
			return nil, err
		}
		inside.Add(names...)
	}
	return inside, nil
}

func fileThere(name string) bool { _, err := far.Lstat(name); return err == nil }

// call is a call of git with paths, or without them if there are too many. Then its output has more.
func call(paths []string, args ...string) gitops.Call {
	if len(paths) <= gitops.PathspecLimit {
		args = append(append(args, "--"), paths...)
	}
	return gitops.Call{Args: args}
}

// worktree reports whether a folder is another worktree of a repository.
func worktree(r *gitops.Repository, folder string) bool {
	info, err := r.Lstat(filepath.Join(folder, ".git"))
	if err != nil || !info.Mode().IsRegular() || info.Size() > pathLimit {
		return false
	}
	content, err := os.ReadFile(filepath.Join(r.Top, folder, ".git"))
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
		if !fileThere(filepath.Join(top, name)) {
			return name
		}
		name = fmt.Sprintf("%s.mine%d", path, n)
	}
}
