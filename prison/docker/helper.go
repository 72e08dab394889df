package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/walls"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// helper is a container for one short task, with no network, a read-only system and no more capabilities
// than named.
type helper struct {
	image    string
	argv     []string
	uid, gid int
	caps     []string
	mounts   []mount.Mount
	key      string // whose it is, see [record]: should we be killed, it goes with the prison
	made     string // see labelMade
}

func (h helper) labels(s prison.Spec) map[string]string {
	labels := map[string]string{labelRole: roleHelper, labelKey: h.key, labelID: s.ID}
	if h.made != "" {
		labels[labelMade] = h.made
	}
	return labels
}

// What a helper may use: some images' programs are nobody's friends.
const (
	helperMemory = 256 << 20
	helperPIDs   = 64
)

// helperUlimits are less than any engine has: Podman asks for more than it may have itself.
var helperUlimits = []*container.Ulimit{walls.NoCores(), {Name: "nofile", Soft: 1024, Hard: 1024}, {Name: "nproc", Soft: 4096, Hard: 4096}}

func (h helper) create(ctx context.Context, e *engine, s prison.Spec) (id string, err error) {
	pids := int64(helperPIDs)
	config := container.Config{
		Image: h.image, User: fmt.Sprintf("%d:%d", h.uid, h.gid), Entrypoint: h.argv[:1], Cmd: h.argv[1:],
		WorkingDir: "/", Labels: h.labels(s),
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
	host := container.HostConfig{
		NetworkMode: "none", CapDrop: []string{"ALL"}, CapAdd: h.caps, Mounts: h.mounts,
		SecurityOpt: []string{"no-new-privileges"}, ReadonlyRootfs: true,
		LogConfig: container.LogConfig{Type: "none"}, AutoRemove: true,
		Resources: container.Resources{Memory: helperMemory, PidsLimit: &pids, Ulimits: helperUlimits},
	}
	bounded, cancel := call(ctx)
	defer cancel()
	c, err := e.ContainerCreate(bounded, &config, &host, nil, nil, "")
	return c.ID, e.failed(ctx, "create helper container", err)
}

// runOnce runs a helper to its end.
func (e *engine) runOnce(ctx context.Context, s prison.Spec, h helper) (status int, err error) {
	id, err := h.create(ctx, e, s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, e.remove(context.WithoutCancel(ctx), id)) }()
	bounded, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	ended, errs := e.ContainerWait(bounded, id, container.WaitConditionNextExit)
	if err := e.start(ctx, id, s.Image); err != nil {
		return 0, err
	}
	select {
	case r := <-ended:
		return int(r.StatusCode), nil
	case err := <-errs:
		return 0, e.failed(ctx, "wait for helper container", err)
	}
}

// start starts a container of an image.
func (e *engine) start(ctx context.Context, id, ref string) error {
	bounded, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	err := e.ContainerStart(bounded, id, container.StartOptions{})
	if err == nil {
		return nil
	}
	return cmp.Or(e.lacksShell(ctx, id, ref), e.failed(ctx, "start container", err))
}

// remove removes a container, whatever it does, with the volumes that have no name.
func (e *engine) remove(ctx context.Context, id string) error {
	bounded, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for deadline := time.Now().Add(killPatience); ; time.Sleep(50 * time.Millisecond) {
		err := e.ContainerRemove(bounded, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || gone(err) {
			return nil
		}
		if notNow(err) { // the engine removes it already
			return e.awaitRemoval(ctx, id)
		}
		// Podman refuses while it is about to do so by itself.
		if unreachable(err) || bounded.Err() != nil || time.Now().After(deadline) {
			return e.failed(ctx, "remove container", err)
		}
	}
}

// awaitRemoval waits until the engine has removed a container.
func (e *engine) awaitRemoval(ctx context.Context, id string) error {
	bounded, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	ended, errs := e.ContainerWait(bounded, id, container.WaitConditionRemoved)
	select {
	case <-ended:
		return nil
	case err := <-errs:
		if gone(err) {
			return nil
		}
		return e.failed(ctx, "wait for the container's removal", err)
	}
}

// passive describes a container that never runs. Its root is not read-only, since nothing may be unpacked there then.
func (h helper) passive(s prison.Spec) (*container.Config, *container.HostConfig) {
	return &container.Config{Image: h.image, Entrypoint: h.argv, Labels: h.labels(s)},
		&container.HostConfig{NetworkMode: "none", CapDrop: []string{"ALL"}, Mounts: h.mounts}
}

// within makes a container that never runs, and has something done with it.
func (e *engine) within(ctx context.Context, s prison.Spec, h helper, do func(id string) error) (err error) {
	config, host := h.passive(s)
	bounded, cancel := call(ctx)
	defer cancel()
	c, err := e.ContainerCreate(bounded, config, host, nil, nil, "")
	if err != nil {
		return e.failed(ctx, "create helper container", err)
	}
	defer func() { err = errors.Join(err, e.remove(context.WithoutCancel(ctx), c.ID)) }()
	return do(c.ID)
}

// emptyScript removes all that is in the folder that is its argument. Not every rm(1) removes what no path is short enough for, or what has
// more levels than there may be open files; it leaves that, and what is lower than a path may surely be long comes to the top.
const emptyScript = `
_top=$1 _moved=0
while :; do
	rm -rf "$_top" 2>/dev/null
	cd "$_top" || exit
	_length=0
	while [ $_length -lt 900 ]; do
		for _dir in ./* ./.[!.]* ./..?*; do
			[ -d "$_dir" ] && ! [ -L "$_dir" ] && break
			_dir=
		done
		[ "$_dir" ] && cd -P "$_dir" 2>/dev/null || exit 0
		_length=$((_length + ${#_dir}))
	done
	for _dir in ./* ./.[!.]* ./..?*; do
		[ -d "$_dir" ] || continue
		_moved=$((_moved + 1))
		mv "$_dir" "$_top/.$_moved" || exit
	done
done
`

// empty removes what is in the workspace, from inside: nothing else of the host can be reached there, whatever
// links there are. What an agent closed to itself is open to a root with the capabilities for it.
func (e *engine) empty(ctx context.Context, image, key string, s prison.Spec) error {
	// The mount's own root stays; whether anything else did, shows when the caller removes it.
	_, err := e.runOnce(ctx, s, helper{
		key: key, image: image, argv: []string{defaultSh, "-c", emptyScript, "sh", prison.Workspace},
		caps: []string{"DAC_OVERRIDE", "FOWNER"}, mounts: []mount.Mount{bind(s.Workspace, false)},
	})
	return err
}
