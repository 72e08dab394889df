package quarantine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/packing"
)

// Handover installs packs in the outer repository's object store. As with git fetch, a pack arrives together with a
// .keep file (git-index-pack(1), --keep), so that no git gc, repack or prune removes the pack before a ref reaches
// its objects. [Handover.Release] removes the .keep files once the refs have moved. A repack that runs at that moment
// has listed the pack as kept, or has not listed it. A later repack sees the refs.
//
// The host state has a hard link to each pack, until the outer repository has repacked the objects and is verified to
// be complete.
type Handover struct {
	state string // the host state of the airlock
	dir   string // the folder of the hard links
	outer *gitops.Repository
	mark  string // content of our .keep files
	file  string // a file with that content in the host state

	config gitops.Config // of the outer repository; nil until it is needed
}

// OpenHandover returns the handover of an airlock with the host state dir.
func OpenHandover(r *gitops.Repository, dir string) (*Handover, error) {
	mark, err := gitops.Token(dir)
	if err != nil {
		return nil, err
	}
	h := &Handover{state: dir, dir: filepath.Join(dir, "given", "pack"), outer: r, mark: mark, file: filepath.Join(dir, "given", "keep")}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return nil, err
	}
	if h.kept(h.file) {
		return h, nil
	}
	return h, writeNew(h.file, []byte(h.mark))
}

// Release ends the hand-over of an airlock with the host state dir, see [Handover.Release].
func Release(r *gitops.Repository, dir string) error {
	h, err := OpenHandover(r, dir)
	if err != nil {
		return err
	}
	return h.Release()
}

// installed lists the files of a pack in the order in which they are created: git sees a pack when its index exists.
var installed = []string{".pack", ".rev", ".idx"}

// store returns the folder of the outer repository's packs.
func (h *Handover) store() string { return filepath.Join(h.outer.CommonDir, "objects", "pack") }

// install moves the pack base, a path in h.dir without extension, into the outer store and returns its new name.
func (h *Handover) install(ctx context.Context, base string) (name string, err error) {
	name = packing.NewName(h.outer.Format)
	store := h.store()
	if err := os.MkdirAll(store, 0o777); err != nil {
		return "", err
	}
	if h.config == nil {
		if h.config, err = h.outer.Config(ctx); err != nil {
			return "", err
		}
	}
	if err := h.place(h.file, filepath.Join(store, name+".keep")); err != nil {
		return "", err
	}
	for _, ext := range installed {
		from := filepath.Join(h.dir, name+ext)
		err := os.Rename(base+ext, from)
		if errors.Is(err, fs.ErrNotExist) && ext == ".rev" {
			continue
		}
		if err == nil {
			err = h.place(from, filepath.Join(store, name+ext))
		}
		if err != nil {
			return "", err
		}
	}
	return name, durable.SyncPath(store)
}

// half returns the temporary name of a pack's file that is being copied. The token in the name proves that the file is ours. The name must not
// begin with tmp_, because git prune removes such files.
func (h *Handover) half(name string) string {
	return filepath.Join(h.store(), strings.ReplaceAll(strings.TrimSpace(h.mark), " ", "-")+"-"+name)
}

// place links or copies a file of the host state into the outer store, with the permissions of a file that git makes.
func (h *Handover) place(from, to string) error {
	if err := h.share(from); err != nil {
		return err
	}
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) || gitops.NoRoom(err) {
		return err
	}
	// The store is on another file system, or on one without hard links.
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	half := h.half(filepath.Base(to))
	out, err := os.OpenFile(half, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = errors.Join(h.share(half), os.Rename(half, to))
	}
	if err != nil {
		_ = os.Remove(half)
	}
	return err
}

// share gives a pack's file the permissions of a shared repository, and its group where files inherit the group of the folder.
func (h *Handover) share(name string) error {
	folder, err := os.Stat(h.store())
	if err != nil {
		return err
	}
	file, err := os.Stat(name)
	if err != nil {
		return err
	}
	if folder.Mode()&fs.ModeSetgid != 0 {
		_ = os.Chown(name, -1, groupOf(folder)) // a group that is not the user's cannot be given away
	}
	return os.Chmod(name, h.config.Sharing().Mode(file.Mode().Perm()))
}

// prove reads the index of an installed pack from the store and returns an error if an object is not in it.
func (h *Handover) prove(name string, ids []gitops.OID) error {
	base := filepath.Join(h.store(), name)
	if keep, err := os.ReadFile(base + ".keep"); err != nil || string(keep) != h.mark {
		return errors.Join(fmt.Errorf("the pack %s is not kept", name), err)
	}
	p, err := openIndex(base+".idx", packing.HashSize(h.outer.Format))
	if err != nil {
		return err
	}
	defer p.close()
	for _, id := range ids {
		name, err := hex.DecodeString(string(id))
		if err != nil {
			return err
		}
		if _, found, err := p.find(name); err != nil || !found {
			return errors.Join(fmt.Errorf("object %s is not in the repository after the hand-over", id), err)
		}
	}
	return nil
}

// Release removes our .keep files, and the rest of a pack that a crash interrupted. It must not run before the refs
// have moved, nor while another process of the airlock installs packs. While a journal reports that a landing must be
// recovered, Release does nothing.
func (h *Handover) Release() error {
	if gitops.HasJournal(h.state) {
		return nil
	}
	var left []string
	linked := namesIn(h.dir)
	for name := range linked {
		if !linked[strings.TrimSuffix(name, filepath.Ext(name))+".idx"] || strings.HasPrefix(name, "new") {
			left = append(left, filepath.Join(h.dir, name))
		}
	}
	half := filepath.Base(h.half(""))
	store := namesIn(h.store())
	for name := range store {
		file := filepath.Join(h.store(), name)
		base, keeps := strings.CutSuffix(file, ".keep")
		keeps = keeps && h.kept(file)
		if keeps && !store[filepath.Base(base)+".idx"] {
			left = append(left, base+".pack", base+".rev")
		}
		if keeps || strings.HasPrefix(name, half) {
			left = append(left, file) // removed last, because it proves that the others are ours
		}
	}
	var errs []error
	for _, name := range left {
		errs = append(errs, gitops.Unless(os.Remove(name), fs.ErrNotExist))
	}
	return errors.Join(errs...)
}

// namesIn returns the names in a folder. There are none if it cannot be read.
func namesIn(dir string) map[string]bool {
	names := gitops.Set[string]{}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names.Add(e.Name())
	}
	return names
}

// kept reports whether a .keep file is ours.
func (h *Handover) kept(name string) bool {
	content, err := os.ReadFile(name)
	return err == nil && string(content) == h.mark
}

// Heal finds installed packs that the outer store no longer has. If everything that the refs reach is there without
// them, the host state forgets these packs. Otherwise it installs them again and returns their number. The caller
// releases them. base is a commit that the outer repository had before.
func (h *Handover) Heal(ctx context.Context, base gitops.OID, refs ...string) (again int, err error) {
	gone, err := h.gone()
	if err != nil || len(gone) == 0 {
		return 0, err
	}
	whole, err := complete(ctx, h.outer, base, refs)
	if err != nil {
		return 0, err
	}
	for _, name := range gone {
		if whole {
			err = h.forget(name)
		} else if _, err = h.install(ctx, filepath.Join(h.dir, name)); err == nil {
			again++
		}
		if err != nil {
			return again, err
		}
	}
	return again, nil
}

// gone lists the installed packs that the outer store does not have.
func (h *Handover) gone() (names []string, err error) {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return nil, gitops.Unless(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		name, packed := strings.CutSuffix(e.Name(), ".idx")
		if _, missing := os.Lstat(filepath.Join(h.store(), e.Name())); packed && missing != nil {
			names = append(names, name)
		}
	}
	return names, nil
}

func (h *Handover) forget(name string) error {
	var errs []error
	for _, ext := range installed {
		errs = append(errs, gitops.Unless(os.Remove(filepath.Join(h.dir, name+ext)), fs.ErrNotExist))
	}
	return errors.Join(errs...)
}

// complete reports whether the repository has everything that the refs reach and base does not reach. Promised
// objects of a partial clone count as present.
func complete(ctx context.Context, r *gitops.Repository, base gitops.OID, refs []string) (bool, error) {
	at, err := r.Refs(ctx, refs...)
	if err != nil {
		return false, err
	}
	err = connected(ctx, r, slices.Collect(maps.Values(at)), []gitops.OID{base})
	if _, ok := errors.AsType[*gitops.Error](err); ok {
		return false, nil
	}
	return err == nil, err
}

// connected returns a [gitops.Error] if something that tips reach and known do not is missing.
func connected(ctx context.Context, r *gitops.Repository, tips, known []gitops.OID) error {
	revisions := gitops.Names(tips)
	for _, id := range known {
		revisions = append(revisions, "^"+string(id))
	}
	return r.Look(ctx, gitops.Call{Args: []string{"rev-list", "--objects", "--quiet", "--exclude-promisor-objects", "--stdin"},
		Stdin: strings.NewReader(strings.Join(revisions, "\n") + "\n"), Stdout: io.Discard})
}

// groupOf returns the group of a file.
func groupOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Gid)
	}
	return -1
}
