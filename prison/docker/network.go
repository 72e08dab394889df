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
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/fence"
	"github.com/git-airlock/git-airlock/prison/docker/inside"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
)

// The sink is a network that leads nowhere, not even to the host, and that has all link-local addresses. Clouds
// serve credentials at one of these addresses. A container in the sink never sends packets for them to its other
// network. An engine can have only one network for a range, so prisons share the sink, but cannot reach each other
// in it.
const (
	sinkName       = "link-local-sink"
	linkLocal      = linkLocalStart + "0.0/16"
	linkLocalStart = "169.254."
)

// makeNetwork creates the bridge of a prison with an open network. The container refers to the bridge by name.
func (e *engine) makeNetwork(ctx context.Context, r *record, s prison.Spec) error {
	if s.Network != prison.NetworkOpen {
		return nil
	}
	return e.ensureNetwork(ctx, r.network(), network.CreateOptions{Driver: "bridge", Labels: r.labels(s, rolePrison)})
}

// joinSink connects the container to the sink, too. The container must not run yet.
func (e *engine) joinSink(ctx context.Context, id string) error {
	sink := network.CreateOptions{
		Driver: "bridge", Internal: true, Labels: map[string]string{labelRole: roleSink},
		IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: linkLocal}}},
		Options: map[string]string{
			"com.docker.network.bridge.inhibit_ipv4": "true", // the host gets no address and no route
			"com.docker.network.bridge.enable_icc":   "false",
		},
	}
	if err := e.ensureNetwork(ctx, sinkName, sink); err != nil {
		return err
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	if err := e.NetworkConnect(bounded, sinkName, id, nil); err != nil && !dialect.NotNow(err) && !e.joined(bounded, id, sinkName) {
		return e.Failed(ctx, "shut link-local addresses", err)
	}
	return nil
}

// joined reports whether a container is in a network. Not every engine returns this as a kind of error.
func (e *engine) joined(ctx context.Context, id, name string) bool {
	c, err := e.ContainerInspect(ctx, id)
	if err != nil || c.NetworkSettings == nil {
		return false
	}
	_, in := c.NetworkSettings.Networks[name]
	return in
}

// startOpen starts a container with an open network. If the end of another prison removes the sink before this one
// has joined it, startOpen creates a new sink.
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
	// networkPatience is how long to wait while other prisons create or leave a network.
	networkPatience = 5 * time.Second
	networkPoll     = 50 * time.Millisecond
)

var errForeign = errors.New("it is somebody else's")

// ensureNetwork creates a network if it does not exist. Other processes may create it at the same time, and engines
// report that in several ways.
func (e *engine) ensureNetwork(ctx context.Context, name string, o network.CreateOptions) error {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	for deadline := time.Now().Add(networkPatience); ; time.Sleep(networkPoll) {
		n, err := e.NetworkInspect(bounded, name, network.InspectOptions{})
		if err == nil {
			if n.Labels[labelRole] != o.Labels[labelRole] || n.Labels[labelKey] != o.Labels[labelKey] {
				return fmt.Errorf("network %q: %w", name, errForeign)
			}
			return nil
		}
		if !dialect.Gone(err) {
			return e.Failed(ctx, "inspect network", err)
		}
		_, err = e.NetworkCreate(bounded, name, o)
		if err == nil {
			return nil
		}
		if foreign := e.overlaps(bounded, o); foreign != "" {
			return fmt.Errorf("network %q, which has addresses of %s: %w", foreign, linkLocal, errForeign)
		}
		if bounded.Err() != nil || dialect.Unreachable(err) || dialect.Refused(err) || time.Now().After(deadline) {
			return e.Failed(ctx, "create network "+name, err)
		}
	}
}

// overlaps returns the name of another network with link-local addresses, if the network to create needs these
// addresses.
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

// leaveSink disconnects a stopped container from the sink, and removes the sink with its last member.
func (e *engine) leaveSink(ctx context.Context, c *container.InspectResponse) error {
	if c == nil || c.NetworkSettings == nil || c.NetworkSettings.Networks[sinkName] == nil {
		return nil
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	if err := e.NetworkDisconnect(bounded, sinkName, c.ID, true); err != nil && !dialect.Gone(err) {
		return e.Failed(ctx, "leave "+sinkName, err)
	}
	e.NetworkRemove(bounded, sinkName) //nolint:errcheck // fails while other containers are in it
	return nil
}

// removeNetworks removes the networks that makeNetwork created.
func (e *engine) removeNetworks(ctx context.Context, r *record) error {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	f := filters.NewArgs(filters.Arg("label", labelKey+"="+r.Key))
	list, err := e.NetworkList(bounded, network.ListOptions{Filters: f})
	if err != nil {
		return e.Failed(ctx, "list networks", err)
	}
	for _, n := range list {
		if err := e.removeNetwork(bounded, n.ID); err != nil {
			return e.Failed(ctx, "remove network", err)
		}
	}
	return nil
}

// removeNetwork waits a moment for a container that is being removed, since its connection to the network is
// removed last.
func (e *engine) removeNetwork(ctx context.Context, id string) error {
	for deadline := time.Now().Add(networkPatience); ; time.Sleep(networkPoll) {
		err := e.NetworkRemove(ctx, id)
		if err == nil || dialect.Gone(err) {
			return nil
		}
		if dialect.Unreachable(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// fence blocks private addresses in an open network, or records the weakness if that is impossible.
func (e *engine) fence(ctx context.Context, p *dialect.Platform, r *record, s prison.Spec) error {
	if s.Network != prison.NetworkOpen {
		return nil
	}
	err := e.setFence(ctx, p, r, s)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	p.Lacks(prison.PrivateReachable, fmt.Sprintf("with an open network, private networks and a cloud's metadata can be reached (%v)", err))
	return nil
}

func (e *engine) setFence(ctx context.Context, p *dialect.Platform, r *record, s prison.Spec) error {
	h := helper{image: r.Image, argv: []string{inside.Shell, "-c", waitForever}, caps: []string{"NET_ADMIN"}, key: r.Key}
	box, err := e.beside(ctx, p, s, h, r.Container)
	if err != nil {
		return err
	}
	defer box.Close()
	return fence.Set(ctx, box, e.hostResolvers())
}

// beside opens a helper in the network of a container, with the engine's usual runtime if that uses this kernel.
func (e *engine) beside(ctx context.Context, p *dialect.Platform, s prison.Spec, h helper, id string) (*inside.Container, error) {
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
	if dialect.OwnKernel(p.DefaultRuntime) {
		for _, name := range slices.Sorted(maps.Keys(p.Runtimes)) {
			if !dialect.OwnKernel(name) {
				plan.host.Runtime = name
			}
		}
	}
	return e.open(ctx, plan)
}

// hostResolvers returns the content of the files from which an engine on this machine reads its name servers.
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
