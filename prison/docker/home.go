package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
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

// home finds the volume, or makes it.
func (e *engine) home(ctx context.Context, p *platform, r *record, s prison.Spec) (h home, err error) {
	if p.podman {
		return h, nil
	}
	bounded, cancel := call(ctx)
	defer cancel()
	v, err := e.VolumeInspect(bounded, r.homeVolume())
	if gone(err) {
		r.Furnished = false
		v, err = e.VolumeCreate(bounded, volumes.CreateOptions{Name: r.homeVolume(), Labels: r.labels(s, rolePrison)})
	}
	return home{source: v.Mountpoint, bare: !r.Furnished}, e.failed(ctx, "make volume", err)
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
func (e *engine) give(ctx context.Context, image string, r *record, s prison.Spec, h home, workspace bool) (err error) {
	box := helper{key: r.Key, made: rand.Text(), image: image, argv: []string{defaultSh}}
	var entries []entry
	if workspace {
		box.mounts = append(box.mounts, bind(s.Workspace, false))
		entries = append(entries, folder(strings.TrimPrefix(prison.Workspace, "/"), 0o700, s.UID, s.GID))
	}
	if h.bare {
		labels := r.labels(s, rolePrison)
		labels[labelMade] = box.made
		box.mounts = append(box.mounts, volume(r.homeVolume(), "/home", labels))
		for _, f := range furniture(s) {
			f.name = "home/" + f.name
			entries = append(entries, f)
		}
	}
	config, host := box.passive(s)
	bounded, cancel := call(ctx)
	defer cancel()
	c, err := e.ContainerCreate(bounded, config, host, nil, nil, "")
	if err != nil {
		return e.failed(ctx, "create helper container", err)
	}
	defer func() { err = errors.Join(err, e.remove(context.WithoutCancel(ctx), c.ID)) }()
	if err := e.put(ctx, c.ID, "/", entries...); err != nil || !h.bare {
		return err
	}
	r.Furnished = true
	return r.write(s.Dir)
}
