package land

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/far"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/gitops/killpoint"
)

// mover puts prepared files into the working tree. It exchanges each with the file in its place, and then looks at what it got: a file
// that the user saved after the last check gets its place back, and the landing or recovery ends with a [CollisionError]. Displaced
// files are kept until all is done, since a program that opened one before may still write into it.
//
// After a crash, recovery.find looks in the same folders for files that the user saved.
type mover struct {
	r       *gitops.Repository
	dir     string                 // folder of the host state with the prepared files, which takes the displaced ones
	scratch string                 // the landing's folder of the host state
	from    map[string]string      // prepared files that are elsewhere, by path
	seen    map[string]os.FileInfo // the files of the working tree, from before their content was checked

	placed map[string]os.FileInfo // the files as they were put into their places
	kept   []keptFile
}

// keptFile is a file that a mover has displaced.
type keptFile struct {
	path, name string
	info       os.FileInfo
}

func treeOf(dir string) string    { return filepath.Join(dir, "tree") }    // prepared files, and those displaced by them
func removedOf(dir string) string { return filepath.Join(dir, "removed") } // files that no prepared file has displaced

// move updates the working tree. It first removes files, so that a folder can become a file, and then places the prepared ones. Each
// step is atomic.
func (m *mover) move(changes []gitops.Change) error {
	m.placed = make(map[string]os.FileInfo, len(changes))
	for _, c := range changes {
		if c.Old.Present() && !c.New.Present() {
			killpoint.Reach(stepSwing)
			if err := m.remove(c); err != nil {
				return err
			}
		}
	}
	for _, c := range changes {
		if c.New.Present() {
			if err := m.place(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// place puts one new or changed file into its place.
func (m *mover) place(c gitops.Change) error {
	if c.New.Gitlink() {
		killpoint.Reach(stepSwing)
		// The folder of a submodule replaces a file.
		if c.Old.Present() && !c.Old.Gitlink() {
			if err := m.remove(c); err != nil {
				return err
			}
		}
		return far.MkdirAll(filepath.Join(m.r.Top, c.Path), 0o777)
	}
	from := cmp.Or(m.from[c.Path], filepath.Join(treeOf(m.dir), c.Path))
	info, err := far.Lstat(from)
	if err != nil {
		return gitops.Unless(err, fs.ErrNotExist) // git wrote no file: the path is outside of the sparse checkout
	}
	killpoint.Reach(stepSwing)
	folder := filepath.Dir(filepath.Join(m.r.Top, c.Path))
	if err := far.MkdirAll(folder, 0o777); errors.Is(err, syscall.ENOTDIR) {
		return &CollisionError{[]string{c.Path}}
	} else if err != nil {
		return err
	}
	inherit(from, folder)
	touch(from, info)
	return m.put(c.Path, from)
}

// put puts a file into its place. Across file systems it first copies the file to a name beside the target.
func (m *mover) put(path, from string) error {
	err := m.swap(path, from)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	beside, waiting := besideName(m.r, m.scratch, m.dir, path), waitingName(m.r, m.scratch, path)
	if err := errors.Join(durable.CopyFile(from, waiting), far.Rename(waiting, beside), far.Remove(from)); err != nil {
		return err
	}
	return m.swap(path, beside)
}

// swap puts a file of the same file system into its place.
func (m *mover) swap(path, from string) error {
	placed, err := far.Lstat(from)
	if err != nil {
		return err
	}
	to := filepath.Join(m.r.Top, path)
	if seen := m.seen[path]; seen == nil || seen.IsDir() {
		err = durable.RenameNew(from, to)
		if errors.Is(err, fs.ErrExist) && removeEmptyFolders(to) == nil {
			err = durable.RenameNew(from, to)
		}
		if errors.Is(err, fs.ErrExist) {
			err = &CollisionError{[]string{path}}
		}
	} else {
		err = m.exchange(path, from, placed)
	}
	if err == nil {
		m.placed[path] = placed
	}
	return err
}

// exchange exchanges a file with the one in its place, which must be the one that was checked.
func (m *mover) exchange(path, from string, placed os.FileInfo) error {
	to, seen := filepath.Join(m.r.Top, path), m.seen[path]
	err := durable.Exchange(from, to)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		if now, _ := far.Lstat(to); !sameFile(seen, now) {
			return &CollisionError{[]string{path}}
		}
		return far.Rename(from, to)
	case notThere(err):
		return &CollisionError{[]string{path}} // the user has deleted it
	case err != nil:
		return err
	}
	killpoint.Reach(stepDisplaced)
	got, _ := far.Lstat(from)
	if !sameFile(seen, got) {
		giveBack(from, to, got, placed)
		return &CollisionError{[]string{path}}
	}
	m.kept = append(m.kept, keptFile{path, from, seen})
	return nil
}

// giveBack exchanges a displaced file with the placed one. If the user has saved once more meanwhile, what was saved last gets the place.
func giveBack(displaced, to string, saved, placed os.FileInfo) {
	for range 10 {
		if durable.Exchange(displaced, to) != nil {
			return // recovery finds the file
		}
		got, _ := far.Lstat(displaced)
		if sameFile(placed, got) {
			return
		}
		saved, placed = got, saved
	}
}

// remove removes a file, and the folders that become empty. It leaves the folder of a submodule to the user unless it is empty.
func (m *mover) remove(c gitops.Change) error {
	// If the user has replaced a folder by a symbolic link, git tracks no file below it, and rmdir(2) refuses the link.
	switch seen := m.seen[c.Path]; {
	case c.Old.Gitlink() && m.r.There(c.Path):
		_ = far.Do(filepath.Join(m.r.Top, c.Path), hostenv.RemoveFolder)
	case c.Old.Gitlink() || seen == nil || seen.IsDir():
	default:
		if err := m.takeOut(c.Path); err != nil {
			return err
		}
	}
	for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
		if !m.r.There(dir) || far.Do(filepath.Join(m.r.Top, dir), hostenv.RemoveFolder) != nil {
			break
		}
	}
	return nil
}

// takeOut moves a file out of the working tree. It must be the one that was checked.
func (m *mover) takeOut(path string) error {
	to, at := filepath.Join(removedOf(m.dir), path), filepath.Join(m.r.Top, path)
	if err := far.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := far.Rename(at, to)
	elsewhere := errors.Is(err, syscall.EXDEV)
	if elsewhere {
		to = besideName(m.r, m.scratch, m.dir, path)
		err = far.Rename(at, to)
	}
	if err != nil {
		if notThere(err) {
			return nil // the user has deleted it, too
		}
		return err
	}
	killpoint.Reach(stepDisplaced)
	if got, _ := far.Lstat(to); !sameFile(m.seen[path], got) {
		_ = durable.RenameNew(to, at) // recovery finds it if the user has saved another one meanwhile
		return &CollisionError{[]string{path}}
	}
	if elsewhere { // its folder may have to go
		return far.Remove(to)
	}
	m.kept = append(m.kept, keptFile{path, to, m.seen[path]})
	return nil
}

// verify returns a *[CollisionError] if a program has written into a displaced file.
func (m *mover) verify() error {
	return m.each(func(string) error { return nil })
}

// drop removes the displaced files. It returns a *[CollisionError] for those into which a program has written, and leaves them.
func (m *mover) drop() error { return m.each(far.Remove) }

func (m *mover) each(do func(name string) error) error {
	var written []string
	for _, k := range m.kept {
		if now, _ := far.Lstat(k.name); !sameFile(k.info, now) {
			written = append(written, k.path)
		} else if err := do(k.name); err != nil {
			return err
		}
	}
	if len(written) > 0 {
		slices.Sort(written)
		return &CollisionError{written}
	}
	return nil
}

// waitingName returns a temporary name for a copy beside the destination of a file. Such a copy is needed if the file is on another file system,
// from where it cannot be renamed. The name is as random as the name of the landing's scratch folder.
func waitingName(r *gitops.Repository, scratch, name string) string {
	return filepath.Join(r.Top, path.Dir(name), "."+filepath.Base(scratch))
}

// besideName is the name of the whole copy, and of the file that it displaces. It differs for each path, and for each folder of prepared files.
func besideName(r *gitops.Repository, scratch, dir, name string) string {
	sum := sha256.Sum256([]byte(filepath.Base(dir) + "/" + name))
	return waitingName(r, scratch, name) + "-" + hex.EncodeToString(sum[:8])
}
