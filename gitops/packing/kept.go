package packing

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
)

// KeptPacks stores packs in a repository so that nothing removes them before a ref reaches their objects. As git fetch does, it creates each pack
// together with a .keep file (git-index-pack(1), --keep).
type KeptPacks struct {
	Repo    *gitops.Repository
	Sharing gitops.Sharing // of Repo
	Mark    string         // the content of the .keep files, which only this caller uses
}

// folder returns the folder of the packs.
func (k KeptPacks) folder() string { return filepath.Join(k.Repo.CommonDir, "objects", "pack") }

// NewName returns a name that no pack has or had. A running repack removes the packs that it has listed by their names, so a name must not be
// used twice.
func NewName(format string) string {
	name := make([]byte, HashSize(format))
	_, _ = rand.Read(name) // it never fails
	return "pack-" + hex.EncodeToString(name)
}

// half returns the temporary name of an index that is being written. The name must not begin with tmp_, because git prune removes such files.
func (k KeptPacks) half(name string) string { return filepath.Join(k.folder(), k.Mark+"-"+name) }

// Store stores objects with their names as one pack, durably. No git gc, repack or prune removes the pack until [KeptPacks.Release] is called
// with the same mark. So the caller can move a ref to the objects in between. It starts no program: git index-pack would inflate and hash
// everything once more.
func (k KeptPacks) Store(objects []Object, names []gitops.OID) error {
	if k.Repo.Dry {
		return gitops.ErrDryRun
	}
	pack, at := Pack(k.Repo.Format, objects)
	index := Index(k.Repo.Format, pack, at, names)
	if err := os.MkdirAll(k.folder(), 0o777); err != nil {
		return err
	}
	name := NewName(k.Repo.Format)
	base := filepath.Join(k.folder(), name)
	if err := k.write(base+".keep", []byte(k.Mark+"\n")); err != nil {
		return err
	}
	err := gitops.Together( // the file system writes both at once
		func() error { return k.write(base+".pack", pack) },
		func() error { return k.write(k.half(name), index) })
	if err == nil { // git sees a pack when its index exists
		err = os.Rename(k.half(name), base+".idx")
	}
	if err != nil {
		return err
	}
	return durable.SyncPath(k.folder())
}

// write creates a file that is never changed afterwards, durably.
func (k KeptPacks) write(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if info, statErr := f.Stat(); err == nil && statErr == nil {
		err = f.Chmod(k.Sharing.Mode(info.Mode().Perm()))
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// Release removes the .keep files with the mark, also those of a process that died, and the packs that such a process has not finished. No process
// may be storing objects with the mark meanwhile.
func (k KeptPacks) Release() error {
	var errs []error
	remove := func(name string) { errs = append(errs, gitops.Unless(os.Remove(name), fs.ErrNotExist)) }
	for _, keep := range gitops.Glob(k.folder(), "*.keep") {
		content, err := os.ReadFile(keep)
		if err != nil || strings.TrimSpace(string(content)) != k.Mark {
			continue
		}
		base := strings.TrimSuffix(keep, ".keep")
		if _, err := os.Lstat(base + ".idx"); errors.Is(err, fs.ErrNotExist) {
			remove(base + ".pack")
			remove(k.half(filepath.Base(base)))
		}
		remove(keep) // removed last, because it proves that the others are ours
	}
	return errors.Join(errs...)
}
