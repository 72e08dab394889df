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

	"github.com/docker/docker/api/types/mount"
	volumes "github.com/docker/docker/api/types/volume"
)

// What is in the volume at /home, which survives the container, beside the phantom's home.
const (
	statusFolder   = "/home/.run"      // how the launched command ended
	accountsFolder = "/home/.accounts" // files that are mounted over those of the image's /etc
)

// home is the volume at /home.
type home struct {
	source string // where the engine has it; empty on Podman, see [engine.furnishLate]
	bare   bool   // what has to be in it is not yet
}

// mountHome mounts the volume as it is: otherwise an engine gives an empty one what the image's /home has, its owner and mode as well.
func (r *record) mountHome(labels map[string]string) mount.Mount {
	m := volume(r.homeVolume(), "/home", labels)
	m.VolumeOptions.NoCopy = true
	return m
}

// OpenHome implements [prison.Backend].
func (b *Backend) OpenHome(ctx context.Context, s prison.Spec) (prison.Prison, error) {
	r, err := readRecord(s.Dir)
	if err != nil || r == nil {
		return nil, cmp.Or(err, prison.ErrNoHome)
	}
	e, err := b.engine(ctx, r)
	if err != nil {
		return nil, err
	}
	bounded, cancel := call(ctx)
	defer cancel()
	if _, err := e.VolumeInspect(bounded, r.homeVolume()); gone(err) { // the container would bring one
		return nil, prison.ErrNoHome
	}
	return b.look(ctx, s, func(p *plan, r *record) {
		home := r.mountHome(r.labels(s, rolePrison))
		home.Target, home.ReadOnly = prison.Workspace, s.ReadOnly
		p.host.Mounts = []mount.Mount{home}
		p.mark() // one that is made all the same, for a prison that is just being removed, goes with the container
	})
}

// HomeDisk implements [prison.Backend].
func (b *Backend) HomeDisk(s prison.Spec) string {
	r, err := readRecord(s.Dir)
	if err != nil || r == nil {
		return ""
	}
	return r.Disk
}

// home finds the volume, or makes it. A new one is known to be bare from then on, whatever becomes of this start.
func (e *engine) home(ctx context.Context, p *platform, r *record, s prison.Spec) (h home, err error) {
	if p.podman {
		return h, nil
	}
	bounded, cancel := call(ctx)
	defer cancel()
	v, err := e.VolumeInspect(bounded, r.homeVolume())
	if gone(err) {
		r.Furnished = false
		if err := r.write(s.Dir); err != nil {
			return h, err
		}
		v, err = e.VolumeCreate(bounded, volumes.CreateOptions{Name: r.homeVolume(), Labels: r.labels(s, rolePrison)})
	}
	if err != nil {
		return h, e.failed(ctx, "make volume", err)
	}
	return home{source: v.Mountpoint, bare: !r.Furnished || lacks(v.Mountpoint, furniture(s))}, nil
}

// lacks reports whether a folder of this machine's is without one of the entries. Of one that is closed to us, or on a disk of the
// engine's own, nothing is known: see [engine.emptied].
func lacks(dir string, entries []entry) bool {
	if _, err := os.Lstat(dir); err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e entry) bool {
		_, err := os.Lstat(filepath.Join(dir, e.name))
		return errors.Is(err, fs.ErrNotExist)
	})
}

// emptied asks the engine whether a home that was furnished is bare by now, as cleaning up by hand may leave it, and remembers it if so.
func (e *engine) emptied(ctx context.Context, p *platform, r *record, s prison.Spec) (bare bool) {
	if p.podman || !r.Furnished || ctx.Err() != nil {
		return false
	}
	box := helper{key: r.Key, image: r.Image, argv: []string{defaultSh}}
	box.mounts = []mount.Mount{r.mountHome(r.labels(s, rolePrison))}
	e.within(ctx, s, box, func(id string) error { //nolint:errcheck // what cannot be asked for is not the reason
		bounded, cancel := call(ctx)
		defer cancel()
		bare = slices.ContainsFunc(furniture(s), func(f entry) bool {
			_, err := e.ContainerStatPath(bounded, id, path.Join("/home", f.name))
			return gone(err)
		})
		return nil
	})
	r.Furnished = r.Furnished && !bare
	return bare
}

// accounts mounts the files of /etc that tell who is inside. A volume with a copy of all of /etc would show them as well, and
// take the engine as long as everything else that it does for a prison.
func (h home) accounts() (mounts []mount.Mount) {
	if h.source == "" {
		return nil
	}
	for _, file := range accounts(prison.Spec{}) {
		// How mounts propagate is left to the engine, which insists on a way of its own for what it keeps itself.
		mounts = append(mounts, mount.Mount{
			Type: mount.TypeBind, Source: path.Join(h.source, path.Base(accountsFolder), file.name), Target: path.Join("/etc", file.name), ReadOnly: true,
		})
	}
	return mounts
}

// homeFolders are there before the agent is.
func homeFolders(s prison.Spec) []entry {
	return []entry{folder(s.User, 0o700, s.UID, s.GID), folder(path.Base(statusFolder), 0o700, s.UID, s.GID)}
}

// furniture is all that has to be in the volume.
func furniture(s prison.Spec) []entry {
	entries := append(homeFolders(s), folder(path.Base(accountsFolder), 0o755, 0, 0))
	for _, file := range accounts(s) {
		file.name = path.Join(path.Base(accountsFolder), file.name)
		entries = append(entries, file)
	}
	return entries
}

// own makes the phantom the owner of the workspace, and furnishes a bare home: as root on this machine's disk, where the engine has
// its folder there, for everybody else by the engine.
func (e *engine) own(ctx context.Context, image string, r *record, s prison.Spec, h home) error {
	if os.Geteuid() != 0 {
		return e.give(ctx, image, r, s, h, true)
	}
	if err := os.Lchown(s.Workspace, s.UID, s.GID); err != nil || !h.bare {
		return err
	}
	err := lay(h.source, furniture(s))
	if errors.Is(err, fs.ErrNotExist) { // the engine's disk is another: Start asks it
		return nil
	}
	if r.Furnished = err == nil; !r.Furnished {
		return err
	}
	return r.write(s.Dir)
}

// lay makes entries in a folder of this machine's that is root's.
func lay(dir string, entries []entry) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range entries {
		name, isFolder := strings.CutSuffix(e.name, "/")
		if isFolder {
			err = root.Mkdir(name, 0o700)
		} else {
			err = root.WriteFile(name, []byte(e.content), 0o600)
		}
		if err != nil && (!isFolder || !errors.Is(err, fs.ErrExist)) {
			return err
		}
		if err := errors.Join(root.Lchown(name, e.uid, e.gid), root.Chmod(name, os.FileMode(e.mode))); err != nil {
			return err
		}
	}
	return nil
}

// give has the engine make the workspace the phantom's, if that is wanted, and furnish a home that is bare. No process is needed for it:
// the engine unpacks an archive, with just those folders, in a container that never runs. Folders that exist keep what is in them.
func (e *engine) give(ctx context.Context, image string, r *record, s prison.Spec, h home, workspace bool) error {
	box := helper{key: r.Key, made: rand.Text(), image: image, argv: []string{defaultSh}}
	var entries []entry
	if workspace {
		box.mounts = append(box.mounts, bind(s.Workspace, false))
		entries = append(entries, folder(strings.TrimPrefix(prison.Workspace, "/"), 0o700, s.UID, s.GID))
	}
	if h.bare {
		labels := r.labels(s, rolePrison)
		labels[labelMade] = box.made
		box.mounts = append(box.mounts, r.mountHome(labels))
		entries = append(entries, folder("home", 0o755, 0, 0)) // the agent must not rename what is in there
		for _, f := range furniture(s) {
			f.name = "home/" + f.name
			entries = append(entries, f)
		}
	}
	put := func(id string) error { return e.put(ctx, id, "/", entries...) }
	if err := e.within(ctx, s, box, put); err != nil || !h.bare {
		return err
	}
	r.Furnished = true
	return r.write(s.Dir)
}
