package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/inside"

	"github.com/docker/docker/api/types/mount"
	volumes "github.com/docker/docker/api/types/volume"
)

// accountsFolder contains the files that are mounted over those of the image's /etc. It is in the volume at /home, beside the phantom's
// home and [inside.StatusFolder]. The volume survives the container.
const accountsFolder = "/home/.accounts"

// home is the volume at /home.
type home struct {
	source     string // its path on the engine's disk; empty if the home is filled late, see [engine.fillLate]
	incomplete bool   // required entries are missing in the volume
}

// mountHome mounts the volume at /home. NoCopy is needed because an engine otherwise gives an empty volume the content, owner and mode of
// the image's /home.
func (r *state) mountHome(labels map[string]string) mount.Mount {
	m := volume(r.homeVolume(), "/home", labels)
	m.VolumeOptions.NoCopy = true
	return m
}

// OpenHome implements [prison.Backend].
func (b *Backend) OpenHome(ctx context.Context, s prison.Spec) (prison.Prison, error) {
	r, err := readState(s.Dir)
	if err != nil || r == nil {
		return nil, cmp.Or(err, prison.ErrNoHome)
	}
	e, err := b.engine(ctx, r)
	if err != nil {
		return nil, err
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	// without this check, the engine would create a new volume for the container
	if _, err := e.VolumeInspect(bounded, r.homeVolume()); dialect.Gone(err) {
		return nil, prison.ErrNoHome
	}
	return b.startTemporary(ctx, s, func(p *plan, r *state) {
		home := r.mountHome(r.labels(s, rolePrison))
		home.Target, home.ReadOnly = prison.Workspace, s.ReadOnly
		p.host.Mounts = []mount.Mount{home}
		p.mark() // if a Wipe runs at the same time, a volume that is created now is removed with the container
	})
}

// HomeDisk implements [prison.Backend].
func (b *Backend) HomeDisk(s prison.Spec) string {
	r, err := readState(s.Dir)
	if err != nil || r == nil {
		return ""
	}
	return r.Disk
}

// home finds the volume, or creates it. Before it creates a volume, it records that required entries are missing, so that a later start
// knows it if this one fails.
func (e *engine) home(ctx context.Context, p *dialect.Platform, r *state, s prison.Spec) (h home, err error) {
	if p.FillsLate() {
		return h, nil
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	v, err := e.VolumeInspect(bounded, r.homeVolume())
	if dialect.Gone(err) {
		r.Filled = false
		if err := r.write(s.Dir); err != nil {
			return h, err
		}
		v, err = e.VolumeCreate(bounded, volumes.CreateOptions{Name: r.homeVolume(), Labels: r.labels(s, rolePrison)})
	}
	if err != nil {
		return h, e.Failed(ctx, "make volume", err)
	}
	return home{source: v.Mountpoint, incomplete: !r.Filled || lacks(v.Mountpoint, requiredEntries(s))}, nil
}

// lacks reports whether a folder on this machine lacks one of the entries. It returns false for a folder that this process cannot read,
// or that is on another disk of the engine: see [engine.emptied].
func lacks(dir string, entries []dialect.Entry) bool {
	if _, err := os.Lstat(dir); err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e dialect.Entry) bool {
		_, err := os.Lstat(filepath.Join(dir, e.Name))
		return errors.Is(err, fs.ErrNotExist)
	})
}

// emptied reports whether a home that was set up lacks required entries now, for example after somebody has removed them. It asks the
// engine, and records the result.
func (e *engine) emptied(ctx context.Context, p *dialect.Platform, r *state, s prison.Spec) (incomplete bool) {
	if p.FillsLate() || !r.Filled || ctx.Err() != nil {
		return false
	}
	box := helper{key: r.Key, image: r.Image, argv: []string{inside.Shell}}
	box.mounts = []mount.Mount{r.mountHome(r.labels(s, rolePrison))}
	e.within(ctx, s, box, func(id string) error { //nolint:errcheck // on an error, the home counts as complete
		bounded, cancel := dialect.Call(ctx)
		defer cancel()
		incomplete = slices.ContainsFunc(requiredEntries(s), func(f dialect.Entry) bool {
			_, err := e.ContainerStatPath(bounded, id, path.Join("/home", f.Name))
			return dialect.Gone(err)
		})
		return nil
	})
	r.Filled = r.Filled && !incomplete
	return incomplete
}

// accounts returns mounts for the files of /etc that define the users inside. A volume with a copy of the whole /etc would work as well,
// but creating it takes the engine as long as everything else that it does for a prison.
func (h home) accounts() (mounts []mount.Mount) {
	if h.source == "" {
		return nil
	}
	for _, file := range accounts(prison.Spec{}) {
		// The propagation is not set, since the engine requires a certain one for its own folders.
		mounts = append(mounts, mount.Mount{
			Type: mount.TypeBind, Source: path.Join(h.source, path.Base(accountsFolder), file.Name), Target: path.Join("/etc", file.Name), ReadOnly: true,
		})
	}
	return mounts
}

// homeFolders returns the folders of the volume that belong to the phantom.
func homeFolders(s prison.Spec) []dialect.Entry {
	return []dialect.Entry{dialect.Folder(s.User, 0o700, s.UID, s.GID), dialect.Folder(path.Base(inside.StatusFolder), 0o700, s.UID, s.GID)}
}

func requiredEntries(s prison.Spec) []dialect.Entry {
	entries := append(homeFolders(s), dialect.Folder(path.Base(accountsFolder), 0o755, 0, 0))
	for _, file := range accounts(s) {
		file.Name = path.Join(path.Base(accountsFolder), file.Name)
		entries = append(entries, file)
	}
	return entries
}

// giveToPhantom makes the phantom the owner of the workspace, and sets up a home that lacks required entries. Root does this on this
// machine's disk, if the engine's folder is there. Otherwise the engine does it.
func (e *engine) giveToPhantom(ctx context.Context, image string, r *state, s prison.Spec, h home) error {
	if os.Geteuid() != 0 {
		return e.setUp(ctx, image, r, s, h, true)
	}
	if err := os.Lchown(s.Workspace, s.UID, s.GID); err != nil || !h.incomplete {
		return err
	}
	err := createEntries(h.source, requiredEntries(s))
	if errors.Is(err, fs.ErrNotExist) { // the engine's disk is not this machine's: Start uses the engine
		return nil
	}
	if r.Filled = err == nil; !r.Filled {
		return err
	}
	return r.write(s.Dir)
}

// createEntries creates entries in a folder on this machine that belongs to root.
func createEntries(dir string, entries []dialect.Entry) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range entries {
		name, isFolder := strings.CutSuffix(e.Name, "/")
		if isFolder {
			err = root.Mkdir(name, 0o700)
		} else {
			err = root.WriteFile(name, []byte(e.Content), 0o600)
		}
		if err != nil && (!isFolder || !errors.Is(err, fs.ErrExist)) {
			return err
		}
		if err := errors.Join(root.Lchown(name, e.UID, e.GID), root.Chmod(name, os.FileMode(e.Mode))); err != nil {
			return err
		}
	}
	return nil
}

// setUp makes the phantom the owner of the workspace, if workspace is true, and sets up a home that lacks required entries. It needs no
// process: the engine unpacks an archive with only those folders into a container that never runs. Existing folders keep their content.
func (e *engine) setUp(ctx context.Context, image string, r *state, s prison.Spec, h home, workspace bool) error {
	box := helper{key: r.Key, made: rand.Text(), image: image, argv: []string{inside.Shell}}
	var entries []dialect.Entry
	if workspace {
		box.mounts = append(box.mounts, bind(s.Workspace, false))
		entries = append(entries, dialect.Folder(strings.TrimPrefix(prison.Workspace, "/"), 0o700, s.UID, s.GID))
	}
	if h.incomplete {
		labels := r.labels(s, rolePrison)
		labels[labelMade] = box.made
		box.mounts = append(box.mounts, r.mountHome(labels))
		// root owns this folder, so that the agent cannot rename its entries
		entries = append(entries, dialect.Folder("home", 0o755, 0, 0))
		for _, f := range requiredEntries(s) {
			f.Name = "home/" + f.Name
			entries = append(entries, f)
		}
	}
	put := func(id string) error { return e.Put(ctx, id, "/", entries...) }
	if err := e.within(ctx, s, box, put); err != nil || !h.incomplete {
		return err
	}
	r.Filled = true
	return r.write(s.Dir)
}
