package docker

import (
	"context"
	"path"

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
	made   bool   // it is new and empty
}

// home finds the volume, or makes it.
func (e *engine) home(ctx context.Context, p *platform, r *record, s prison.Spec) (h home, err error) {
	if p.podman {
		return h, nil
	}
	bounded, cancel := call(ctx)
	defer cancel()
	v, err := e.VolumeInspect(bounded, r.homeVolume())
	if h.made = gone(err); h.made {
		v, err = e.VolumeCreate(bounded, volumes.CreateOptions{Name: r.homeVolume(), Labels: r.labels(s, rolePrison)})
	}
	h.source = v.Mountpoint
	return h, e.failed(ctx, "make volume", err)
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

// furnish fills the volume before a container has it: the engine looks for what it is to mount when it makes one. Folders that
// exist keep what is in them.
func (e *engine) furnish(ctx context.Context, r *record, s prison.Spec) error {
	entries := append(homeFolders(s), folder(path.Base(accountsFolder), 0o755, 0, 0))
	for _, file := range accounts(s) {
		file.name = path.Join(path.Base(accountsFolder), file.name)
		entries = append(entries, file)
	}
	h := helper{key: r.Key, image: r.Image, argv: []string{defaultSh},
		mounts: []mount.Mount{volume(r.homeVolume(), "/home", r.labels(s, rolePrison))}}
	return e.fill(ctx, s, h, "/home", entries...)
}
