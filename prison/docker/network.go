package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/fence"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
)

// The sink is a network that leads nowhere, not even to the host, with all link-local addresses in
// it: in clouds, credentials are to be had at one of them. A container in it never asks its other network for these.
// One engine can have one network for a range only, so prisons share it, and do not see each other there.
const (
	sinkName       = "link-local-sink"
	linkLocal      = linkLocalStart + "0.0/16"
	linkLocalStart = "169.254."
)

// makeNetwork makes the bridge of an open prison, which its container names.
func (e *engine) makeNetwork(ctx context.Context, r *record, s prison.Spec) error {
	if s.Network != prison.NetworkOpen {
		return nil
	}
	return e.ensureNetwork(ctx, r.network(), network.CreateOptions{Driver: "bridge", Labels: r.labels(s, rolePrison)})
}

// joinSink puts the container into the sink, too. It must not run yet.
func (e *engine) joinSink(ctx context.Context, id string) error {
	sink := network.CreateOptions{
		Driver: "bridge", Internal: true, Labels: map[string]string{labelRole: roleSink},
		IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: linkLocal}}},
		Options: map[string]string{
			"com.docker.network.bridge.inhibit_ipv4": "true", // no address and no route on the host
			"com.docker.network.bridge.enable_icc":   "false",
		},
	}
	if err := e.ensureNetwork(ctx, sinkName, sink); err != nil {
		return err
	}
	bounded, cancel := call(ctx)
	defer cancel()
	if err := e.NetworkConnect(bounded, sinkName, id, nil); err != nil && !notNow(err) && !e.joined(bounded, id, sinkName) {
		return e.failed(ctx, "shut link-local addresses", err)
	}
	return nil
}

// joined reports whether a container is in a network, which not every engine says by the kind of its error.
func (e *engine) joined(ctx context.Context, id, name string) bool {
	c, err := e.ContainerInspect(ctx, id)
	if err != nil || c.NetworkSettings == nil {
		return false
	}
	_, in := c.NetworkSettings.Networks[name]
	return in
}

// startOpen starts a container with a way out. Another prison's end may remove the sink before this one is in it: then there is a new one.
func (e *engine) startOpen(ctx context.Context, id, ref string) (err error) {
	for range openTries {
		if err = e.joinSink(ctx, id); err == nil {
			err = e.start(ctx, id, ref)
		}
		var lasting *prison.Unavailable
		if err == nil || ctx.Err() != nil || errors.As(err, &lasting) || errors.Is(err, errForeign) {
			return err
		}
	}
	return err
}

const (
	openTries = 4
	// networkPatience is for networks that other prisons make or leave just now.
	networkPatience = 5 * time.Second
	networkPoll     = 50 * time.Millisecond
)

var errForeign = errors.New("it is somebody else's")

// ensureNetwork makes a network that is not there. Others may be at the same, and an engine says in many ways that they were quicker.
func (e *engine) ensureNetwork(ctx context.Context, name string, o network.CreateOptions) error {
	bounded, cancel := call(ctx)
	defer cancel()
	for deadline := time.Now().Add(networkPatience); ; time.Sleep(networkPoll) {
		n, err := e.NetworkInspect(bounded, name, network.InspectOptions{})
		if err == nil {
			if n.Labels[labelRole] != o.Labels[labelRole] || n.Labels[labelKey] != o.Labels[labelKey] {
				return fmt.Errorf("network %q: %w", name, errForeign)
			}
			return nil
		}
		if !gone(err) {
			return e.failed(ctx, "inspect network", err)
		}
		_, err = e.NetworkCreate(bounded, name, o)
		if err == nil {
			return nil
		}
		if foreign := e.overlaps(bounded, o); foreign != "" {
			return fmt.Errorf("network %q, which has addresses of %s: %w", foreign, linkLocal, errForeign)
		}
		if bounded.Err() != nil || unreachable(err) || errdefs.IsInvalidArgument(err) || time.Now().After(deadline) {
			return e.failed(ctx, "create network "+name, err)
		}
	}
}

// overlaps names a network of somebody else's with link-local addresses, if one to be wants them.
func (e *engine) overlaps(ctx context.Context, o network.CreateOptions) string {
	if o.IPAM == nil {
		return ""
	}
	list, err := e.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return ""
	}
	for _, n := range list {
		for _, c := range n.IPAM.Config {
			if strings.HasPrefix(c.Subnet, linkLocalStart) && n.Labels[labelRole] != roleSink {
				return n.Name
			}
		}
	}
	return ""
}

// leaveSink takes a stopped container out of the sink, and removes the sink with its last member.
func (e *engine) leaveSink(ctx context.Context, c *container.InspectResponse) error {
	if c == nil || c.NetworkSettings == nil || c.NetworkSettings.Networks[sinkName] == nil {
		return nil
	}
	bounded, cancel := call(ctx)
	defer cancel()
	if err := e.NetworkDisconnect(bounded, sinkName, c.ID, true); err != nil && !gone(err) {
		return e.failed(ctx, "leave "+sinkName, err)
	}
	e.NetworkRemove(bounded, sinkName) //nolint:errcheck // others may be in it
	return nil
}

// removeNetworks removes what makeNetwork made.
func (e *engine) removeNetworks(ctx context.Context, r *record) error {
	bounded, cancel := call(ctx)
	defer cancel()
	f := filters.NewArgs(filters.Arg("label", labelKey+"="+r.Key))
	list, err := e.NetworkList(bounded, network.ListOptions{Filters: f})
	if err != nil {
		return e.failed(ctx, "list networks", err)
	}
	for _, n := range list {
		if err := e.removeNetwork(bounded, n.ID); err != nil {
			return e.failed(ctx, "remove network", err)
		}
	}
	return nil
}

// removeNetwork waits a moment for a container that is just going: what it had there goes after it.
func (e *engine) removeNetwork(ctx context.Context, id string) error {
	for deadline := time.Now().Add(networkPatience); ; time.Sleep(networkPoll) {
		err := e.NetworkRemove(ctx, id)
		if err == nil || gone(err) {
			return nil
		}
		if unreachable(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// fence closes an open network to private addresses, or notes that it is not closed.
func (e *engine) fence(ctx context.Context, p *platform, r *record, s prison.Spec) error {
	if s.Network != prison.NetworkOpen {
		return nil
	}
	err := e.setFence(ctx, p, r, s)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	p.lacks(prison.PrivateReachable, fmt.Sprintf("with an open network, private networks and a cloud's metadata can be reached (%v)", err))
	return nil
}

func (e *engine) setFence(ctx context.Context, p *platform, r *record, s prison.Spec) error {
	h := helper{image: r.Image, argv: []string{defaultSh, "-c", waitForever}, caps: []string{"NET_ADMIN"}, key: r.Key}
	box, err := e.beside(ctx, p, s, h, r.Container)
	if err != nil {
		return err
	}
	defer box.Close()
	return fence.Set(ctx, box, e.hostResolvers())
}

// beside opens a helper in the network of a container, with the engine's usual runtime where that has this kernel.
func (e *engine) beside(ctx context.Context, p *platform, s prison.Spec, h helper, id string) (*running, error) {
	pids := int64(helperPIDs)
	plan := plan{
		config: container.Config{
			Image: h.image, User: "0:0", Entrypoint: h.argv[:1], Cmd: h.argv[1:], WorkingDir: "/", Labels: h.labels(s),
			OpenStdin: true, StdinOnce: true, AttachStdin: true, Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		host: container.HostConfig{
			NetworkMode: container.NetworkMode("container:" + id), CapDrop: []string{"ALL"}, CapAdd: h.caps,
			SecurityOpt: []string{"no-new-privileges"}, ReadonlyRootfs: true, AutoRemove: true,
			Tmpfs:     map[string]string{"/tmp": "rw,exec,nosuid,nodev,size=1m", prison.Workspace: "rw,exec,nosuid,nodev,size=1m"},
			LogConfig: container.LogConfig{Type: "none"},
			Resources: container.Resources{Memory: helperMemory, PidsLimit: &pids, Ulimits: helperUlimits},
		},
	}
	if OwnKernel(p.DefaultRuntime) {
		for _, name := range slices.Sorted(maps.Keys(p.Runtimes)) {
			if !OwnKernel(name) {
				plan.host.Runtime = name
			}
		}
	}
	return e.open(ctx, plan)
}

// hostResolvers returns the content of the files in which an engine on this machine finds its name servers.
func (e *engine) hostResolvers() (all string) {
	if !strings.HasPrefix(e.DaemonHost(), "unix://") {
		return ""
	}
	for _, file := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		content, err := os.ReadFile(file)
		if err == nil {
			all += "\n" + string(content)
		}
	}
	return all
}
