package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Entry is one side of a changed path; the zero Entry is "not there".
type Entry struct {
	Mode string // as git writes it: 100644, 100755, 120000, 160000
	OID  OID
}

func (e Entry) present() bool { return e.Mode != "" }
func (e Entry) gitlink() bool { return e.Mode == "160000" }

// Change is one path that differs between two trees.
type Change struct {
	Path     string
	Old, New Entry
}

// Diff lists the paths in which two trees differ, renames as a removal and an addition.
func (g *Git) Diff(ctx context.Context, old, new OID) ([]Change, error) {
	records, err := g.records(ctx, Call{Args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", string(old), string(new)}})
	if err != nil {
		return nil, err
	}
	changes := make([]Change, 0, len(records)/2)
	for i := 0; i+1 < len(records); i += 2 {
		f := strings.Fields(strings.TrimPrefix(records[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("diff-tree answered %q", Escape(records[i]))
		}
		changes = append(changes, Change{Path: records[i+1], Old: entry(f[0], f[2]), New: entry(f[1], f[3])})
	}
	return changes, nil
}

func entry(mode, id string) Entry {
	if mode == "000000" {
		return Entry{}
	}
	return Entry{mode, OID(id)}
}

// pathspecLimit is the number of paths up to which git is told them; git matches each index
// entry against each pathspec, so that beyond it asking for everything is cheaper.
const pathspecLimit = 100

func pathspecs(changes []Change) []string {
	if len(changes) > pathspecLimit {
		return nil
	}
	args := []string{"--"}
	for _, c := range changes {
		args = append(args, c.Path)
	}
	return args
}

// collisions returns a *[CollisionError] if moving the working tree along changes would overwrite a
// staged, unstaged, untracked or ignored change of the user's. g uses a copy of the user's index.
func (r *Repository) collisions(ctx context.Context, g *Git, old OID, changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	touched := make(map[string]Change, len(changes))
	for _, c := range changes {
		touched[c.Path] = c
	}
	found := map[string]bool{}
	staged, err := g.records(ctx, Call{Args: []string{"diff-index", "--cached", "--name-only", "-z", "--no-renames", "--ignore-submodules=none", string(old)}})
	if err != nil {
		return err
	}
	for _, p := range staged {
		if inTheWay(p, touched) {
			found[p] = true
		}
	}
	unstaged, err := r.unstaged(ctx, g, changes)
	if err != nil {
		return err
	}
	for _, p := range unstaged {
		if _, ok := touched[p]; ok {
			found[p] = true
		}
	}
	for _, c := range changes {
		if c.New.present() {
			for _, p := range r.untracked(c, touched) {
				found[p] = true
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	paths := make([]string, 0, len(found))
	for p := range found {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return &CollisionError{paths}
}

// inTheWay tells whether a staged path is one of the touched, below one or above one.
func inTheWay(p string, touched map[string]Change) bool {
	if _, ok := touched[p]; ok {
		return true
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if c, ok := touched[dir]; ok && c.New.present() {
			return true
		}
	}
	for t, c := range touched {
		if c.New.present() && strings.HasPrefix(t, p+"/") {
			return true
		}
	}
	return false
}

// unstaged lists changed paths whose working tree files are not what the index says. Only if
// there seem to be any the index copy is refreshed, which reads the whole working tree's stat data.
func (r *Repository) unstaged(ctx context.Context, g *Git, changes []Change) ([]string, error) {
	call := Call{Args: append([]string{"diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty"}, pathspecs(changes)...)}
	paths, err := g.records(ctx, call)
	if err != nil || len(paths) == 0 {
		return paths, err
	}
	err = g.Change(ctx, Call{Args: []string{"update-index", "-q", "--refresh"}, Stdout: discard{}})
	if err != nil && status(err) != 1 { // 1: some are not up to date, which is the question
		return nil, err
	}
	return g.records(ctx, call)
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// untracked lists what lies at the path of a new file, or where a folder above it must be,
// and would be lost. Ignored files count.
func (r *Repository) untracked(c Change, touched map[string]Change) []string {
	gone := func(p string) bool { t, ok := touched[p]; return ok && t.Old.present() }
	for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
		info, err := os.Lstat(filepath.Join(r.Top, dir))
		if err == nil && !info.IsDir() && !gone(dir) {
			return []string{dir}
		}
	}
	full := filepath.Join(r.Top, c.Path)
	info, err := os.Lstat(full)
	switch {
	case err != nil:
		return nil
	case !info.IsDir():
		if c.Old.present() {
			return nil // tracked: staged and unstaged changes are told apart above
		}
		return []string{c.Path}
	case c.Old.gitlink() && c.New.gitlink():
		return nil
	}
	var lost []string
	_ = filepath.WalkDir(full, func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(r.Top, p)
		if err != nil || relErr != nil {
			lost = append(lost, c.Path)
			return fs.SkipAll
		}
		if !d.IsDir() && !gone(filepath.ToSlash(rel)) {
			lost = append(lost, filepath.ToSlash(rel))
		}
		return nil
	})
	return lost
}

// moveIn makes the working tree new: removals first, so that a folder can become a file, then
// renames from staging, each atomic.
func (r *Repository) moveIn(changes []Change, staging string) error {
	for _, c := range changes {
		if c.Old.present() && !c.New.present() {
			stopAt(stepSwing)
			if err := r.removeFile(c); err != nil {
				return err
			}
		}
	}
	for _, c := range changes {
		if !c.New.present() {
			continue
		}
		to := filepath.Join(r.Top, c.Path)
		if err := r.makeRoom(c, to); err != nil {
			return err
		}
		if c.New.gitlink() {
			if err := os.MkdirAll(to, 0o777); err != nil {
				return err
			}
			continue
		}
		from := filepath.Join(staging, c.Path)
		if _, err := os.Lstat(from); errors.Is(err, os.ErrNotExist) {
			continue // outside a sparse checkout
		}
		stopAt(stepSwing)
		if err := moveFile(from, to); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom makes the folder of a new file and removes empty folders at its place.
func (r *Repository) makeRoom(c Change, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	info, err := os.Lstat(to)
	if err != nil || !info.IsDir() || c.New.gitlink() {
		return nil
	}
	return removeEmptyFolders(to)
}

func removeEmptyFolders(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			return fmt.Errorf("%s is in the way", filepath.Join(dir, e.Name()))
		}
		if err := removeEmptyFolders(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(dir)
}

// removeFile removes a file and the folders it leaves empty. An unpopulated or still populated
// submodule folder is left to its owner.
func (r *Repository) removeFile(c Change) error {
	full := filepath.Join(r.Top, c.Path)
	err := os.Remove(full)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !c.Old.gitlink() {
		return err
	}
	for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
		if os.Remove(filepath.Join(r.Top, dir)) != nil {
			break
		}
	}
	return nil
}

// moveFile renames; across file systems it copies to a name beside the target first.
func moveFile(from, to string) error {
	err := os.Rename(from, to)
	if err == nil || !isCrossDevice(err) {
		return err
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	beside := filepath.Join(filepath.Dir(to), stagedPrefix+filepath.Base(from))
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		_ = os.Remove(beside)
		if err := os.Symlink(target, beside); err != nil {
			return err
		}
		return os.Rename(beside, to)
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(beside, content, info.Mode().Perm()); err != nil {
		return err
	}
	return os.Rename(beside, to)
}

// stagedPrefix begins the name under which a file waits beside its place when it could not be renamed there.
const stagedPrefix = ".~landing~"

// refresh writes the stat data of the changed paths into an index.
func (r *Repository) refresh(ctx context.Context, index string, changes []Change) error {
	g := r.with("GIT_INDEX_FILE=" + index)
	var kept []Change
	for _, c := range changes {
		if c.New.present() {
			kept = append(kept, c)
		}
	}
	switch {
	case len(kept) == 0:
		return nil
	case len(kept) > pathspecLimit:
		err := g.Change(ctx, Call{Args: []string{"update-index", "-q", "--refresh"}, Stdout: discard{}})
		if status(err) == 1 {
			return nil
		}
		return err
	}
	var names bytes.Buffer
	for _, c := range kept {
		names.WriteString(c.Path + "\x00")
	}
	err := g.Change(ctx, Call{Args: []string{"add", "--refresh", "--ignore-errors", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"}, Stdin: &names, Stdout: discard{}})
	if status(err) > 0 {
		return nil // stat data that is missing costs the user's next git status a look, nothing more
	}
	return err
}
