package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
	"github.com/git-airlock/git-airlock/prison/docker/walls"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// helper is a container for one short task. It has no network, a read-only root, and only the named capabilities.
type helper struct {
	image    string // id or name
	argv     []string
	uid, gid int
	caps     []string // names of its only capabilities
	mounts   []mount.Mount
	// the key of the prison, see [state]: if this process is killed, the helper is removed with the prison
	key     string
	made    string // see labelMade
	role    string // empty means roleHelper
	devices []container.DeviceMapping
}

func (h helper) labels(s prison.Spec) map[string]string {
	labels := map[string]string{labelRole: cmp.Or(h.role, roleHelper), labelKey: h.key, labelID: s.ID}
	if h.made != "" {
		labels[labelMade] = h.made
	}
	return labels
}

// Limits of a helper: bytes, and processes. The programs of an image may be hostile.
const (
	helperMemory = 256 << 20
	helperPIDs   = 64
)

// helperUlimits are lower than the limits of every engine. Podman's defaults can be higher than its own limits, which fails.
var helperUlimits = []*container.Ulimit{walls.NoCores(), {Name: "nofile", Soft: 1024, Hard: 1024}, {Name: "nproc", Soft: 4096, Hard: 4096}}

// plan describes the helper's container.
func (h helper) plan(s prison.Spec) plan {
	pids := int64(helperPIDs)
	return plan{
		config: container.Config{
			Image: h.image, User: fmt.Sprintf("%d:%d", h.uid, h.gid), Entrypoint: h.argv[:1], Cmd: h.argv[1:],
			WorkingDir: "/", Labels: h.labels(s),
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		host: container.HostConfig{
			NetworkMode: "none", CapDrop: []string{"ALL"}, CapAdd: h.caps, Mounts: h.mounts,
			SecurityOpt: []string{"no-new-privileges"}, ReadonlyRootfs: true,
			LogConfig: container.LogConfig{Type: "none"}, AutoRemove: true,
			Resources: container.Resources{Memory: helperMemory, PidsLimit: &pids, Ulimits: helperUlimits},
		},
	}
}

func (h helper) create(ctx context.Context, e *engine, s prison.Spec) (id string, err error) {
	p := h.plan(s)
	id, err = e.Create(ctx, &p.config, &p.host, "")
	return id, e.Failed(ctx, "create helper container", err)
}

func (e *engine) runOnce(ctx context.Context, s prison.Spec, h helper) (status int, err error) {
	id, err := h.create(ctx, e, s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, e.Remove(context.WithoutCancel(ctx), id)) }()
	bounded, cancel := context.WithTimeout(ctx, dialect.StartPatience)
	defer cancel()
	ended, errs := e.ContainerWait(bounded, id, container.WaitConditionNextExit)
	if err := e.start(ctx, id, s.Image); err != nil {
		return 0, err
	}
	select {
	case r := <-ended:
		return int(r.StatusCode), nil
	case err := <-errs:
		return 0, e.Failed(ctx, "wait for helper container", err)
	}
}

// start starts a container of an image.
func (e *engine) start(ctx context.Context, id, ref string) error {
	bounded, cancel := context.WithTimeout(ctx, dialect.StartPatience)
	defer cancel()
	err := e.ContainerStart(bounded, id, container.StartOptions{})
	if err == nil {
		return nil
	}
	return cmp.Or(e.lacksShell(ctx, id, ref), e.foreign(ctx, id, ref, ": "+err.Error()), e.Failed(ctx, "start container", err))
}

// passive describes a container that never runs. Its root is not read-only, since an engine refuses to unpack into
// a read-only root.
func (h helper) passive(s prison.Spec) (*container.Config, *container.HostConfig) {
	return &container.Config{Image: h.image, Entrypoint: h.argv, Labels: h.labels(s)},
		&container.HostConfig{NetworkMode: "none", CapDrop: []string{"ALL"}, Mounts: h.mounts}
}

// within makes a container that never runs, calls do with it, and removes it.
func (e *engine) within(ctx context.Context, s prison.Spec, h helper, do func(id string) error) (err error) {
	config, host := h.passive(s)
	id, err := e.Create(ctx, config, host, "")
	if err != nil {
		return e.Failed(ctx, "create helper container", err)
	}
	defer func() { err = errors.Join(err, e.Remove(context.WithoutCancel(ctx), id)) }()
	return do(id)
}

// otherFolder is the status of emptyScript in another folder than the workspace.
const otherFolder = 70

var errOtherFolder = errors.New("the engine has mounted another folder than the workspace")

// emptyScript removes everything in the folder that is its argument. Not every rm(1) can remove files with paths that are too long, or
// folders nested deeper than the limit of open files. So the script moves the remaining entries from below a certain path length to the
// top, and repeats. The other arguments are the results of [folderOf]: the script touches no other folder than that one.
const emptyScript = `
_top=$1 _moved=0
_is=$(` + sayFolder + `)
case $2:$_is in :* | *:'- -') ;; *) [ "${_is% *}" = "$2" ] || [ "${_is#* }" = "$3" ] || exit 70 ;; esac
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

// empty removes the content of the workspace from inside a container, where no link can lead to another file of the host. The mount
// point itself stays. If anything else stays, the caller notices when it removes the folder.
func (e *engine) empty(ctx context.Context, image, key string, s prison.Spec) error {
	folder, owner := folderOf(s.Workspace)
	status, err := e.runOnce(ctx, s, emptier(image, key, s, inside.Shell, "-c", emptyScript, "sh", prison.Workspace, folder, owner))
	if err == nil && status == otherFolder {
		err = errOtherFolder
	}
	return err
}

// emptier is a helper that removes the content of the workspace with a command. It runs as root, with the capabilities to open folders
// that the agent closed to itself.
func emptier(image, key string, s prison.Spec, argv ...string) helper {
	return helper{key: key, image: image, argv: argv, caps: []string{"DAC_OVERRIDE", "FOWNER"}, mounts: []mount.Mount{bind(s.Workspace, false)}}
}
