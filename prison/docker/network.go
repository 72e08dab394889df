package docker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/calls"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/pkg/stdcopy"
)

// A network is an interface in the container. Its other end is a descriptor of a process on the host, the network's keeper. The engine
// gives the container no network. A helper container joins the container's network, makes the interface, and passes the descriptor out
// over a socket. That socket is mounted into the helper alone.
const (
	// networkFolder is the folder of the socket in the prison's host folder. The helper can open it, although the helper's root has no
	// capability for files. The host folder above it is closed to everybody else.
	networkFolder = "interface"
	// In the prison's host folder, networkStateName is the file with a [networkState], and networkLockName is locked by the keeper.
	networkStateName, networkLockName = "interface.json", "interface.lock"
	// helperSocket is the path of the socket in the helper.
	helperSocket = "/run/network/"
	// mendDevice is the command that makes the device available.
	mendDevice = "sudo modprobe tun"
)

// networkFiles are the files of a network in the prison's host folder.
var networkFiles = []string{networkFolder + "/" + socketName, networkFolder, networkStateName, networkLockName}

type networkState struct {
	Owner   string `json:"owner"`   // id of the container that has the interface
	Started string `json:"started"` // when that container was started
	Relay   int    `json:"relay"`   // id of the process that carries the packets
}

// networkOrder is the configuration of the keeper of a network.
type networkOrder struct {
	Spec    prison.Spec
	Secrets []secret.Secret // the secrets of Spec, which is sent without them
	Host    string          // address of the engine
	Key     string          // see [state]
	Image   string          // id of the image for helpers
	Owner   string          // id of the container whose network it is
}

func (o networkOrder) path(name string) string { return filepath.Join(o.Spec.Dir, name) }

// owner returns the id of the container that has the prison's network.
func (r *state) owner() string { return cmp.Or(r.Holder, r.Container) }

func newNetworkOrder(s prison.Spec, r *state) networkOrder {
	s.Env = nil
	return networkOrder{Spec: s, Secrets: s.Secrets, Host: r.Host, Key: r.Key, Image: r.Image, Owner: r.owner()}
}

// startHolder makes and starts the container that has the network for a runtime with its own network stack. Such a runtime takes the
// interfaces that it finds when it starts, so another container must have them before. Its first process only waits.
func (e *engine) startHolder(ctx context.Context, p *dialect.Platform, r *state, s prison.Spec) error {
	r.Holder = ""
	if s.Network == prison.NetworkNone || !p.Foreign(s.Runtime) {
		return nil
	}
	if err := e.removeAll(ctx, r.Key, roleHolder); err != nil {
		return err
	}
	h := helper{image: r.Image, argv: []string{inside.Shell, "-c", wait}, key: r.Key, role: roleHolder}
	plan := h.besidePlan(p, s, "none")
	plan.config.User, plan.config.Hostname = nobody, s.Hostname
	plan.config.StdinOnce, plan.config.AttachStdin, plan.host.AutoRemove = false, false, false
	plan.host.DNS, plan.host.DNSSearch, plan.host.DNSOptions = []string{resolver()}, []string{"."}, nil
	id, err := e.Create(ctx, &plan.config, &plan.host, containerName(s)+"-network")
	if dialect.NotNow(err) { // the name is taken
		id, err = e.Create(ctx, &plan.config, &plan.host, "")
	}
	if err != nil {
		return e.Failed(ctx, "create container for the network", err)
	}
	r.Holder = id
	return e.start(ctx, id, s.Image)
}

// besidePlan plans a helper with a network. The helper's runtime uses this machine's kernel.
func (h helper) besidePlan(p *dialect.Platform, s prison.Spec, network string) plan {
	plan := h.plan(s)
	plan.config.OpenStdin, plan.config.StdinOnce, plan.config.AttachStdin = true, true, true
	plan.host.NetworkMode, plan.host.Devices = container.NetworkMode(network), h.devices
	plan.host.Tmpfs = map[string]string{"/tmp": "rw,exec,nosuid,nodev,size=1m"}
	if p.Security("selinux") {
		plan.host.SecurityOpt = append(plan.host.SecurityOpt, "label=disable") // otherwise the helper could not use a socket of the host
	}
	if p.FillsTmpfs() {
		plan.host.Tmpfs["/tmp"] += ",notmpcopyup"
	}
	if dialect.OwnKernel(p.DefaultRuntime) {
		for _, name := range slices.Sorted(maps.Keys(p.Runtimes)) {
			if !dialect.OwnKernel(name) {
				plan.host.Runtime = name
			}
		}
	}
	return plan
}

// callBeside makes system calls in the network of a container. A helper makes them, and ends.
func (e *engine) callBeside(ctx context.Context, p *dialect.Platform, o networkOrder, list []calls.Call) ([]int64, error) {
	script, input, err := calls.Script(list)
	if err != nil {
		return nil, err
	}
	h := helper{
		image: o.Image, argv: []string{inside.Shell, "-c", script}, key: o.Key, caps: []string{"NET_ADMIN"},
		devices: []container.DeviceMapping{{PathOnHost: device, PathInContainer: device, CgroupPermissions: "rw"}},
		mounts: []mount.Mount{{
			Type: mount.TypeBind, Source: o.path(networkFolder), Target: strings.TrimSuffix(helperSocket, "/"), ReadOnly: true,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
		}},
	}
	plan := h.besidePlan(p, o.Spec, "container:"+o.Owner)
	plan.config.AttachStdout, plan.config.AttachStderr = true, true
	bounded, cancel := context.WithTimeout(ctx, dialect.StartPatience)
	defer cancel()
	id, err := e.Create(bounded, &plan.config, &plan.host, "")
	if err != nil {
		return nil, e.Failed(ctx, "create helper container", err)
	}
	defer e.Remove(context.WithoutCancel(ctx), id) //nolint:errcheck // if this fails, the helper is removed with the prison
	stream, err := e.ContainerAttach(bounded, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, e.Failed(ctx, "attach to helper container", err)
	}
	defer stream.Close()
	defer context.AfterFunc(bounded, stream.Close)()
	if err := e.start(ctx, id, o.Image); err != nil {
		return nil, err
	}
	go func() {
		stream.Conn.Write(input) //nolint:errcheck // on failure there are too few results
		stream.CloseWrite()      // on failure there are too few results
	}()
	out, errOut := prison.Capped{Max: 64 << 10}, prison.Capped{Max: 200}
	_, err = stdcopy.StdCopy(&out, &errOut, stream.Reader)
	results, short := calls.Results(out.Bytes(), len(list))
	if short != nil {
		return nil, errors.Join(short, err, ctx.Err(), errorOutput(errOut.Bytes()))
	}
	return results, nil
}

// errorOutput returns an error with the text that a helper wrote to its error output, or nil if there is none.
func errorOutput(text []byte) error {
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil
	}
	return fmt.Errorf("the network's helper wrote %q", text)
}
