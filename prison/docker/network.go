package docker

import (
	"context"
	"fmt"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
)

// The sink is a network that leads nowhere, not even to the host, with all link-local addresses in
// it: in clouds, credentials are to be had at one of them. A container in it never asks its other network for these.
// One engine can have one network for a range only, so prisons share it, and do not see each other there.
const (
	sinkName  = "link-local-sink"
	linkLocal = "169.254.0.0/16"
)

// makeNetwork makes the bridge of an open prison, which its container names.
func (e *engine) makeNetwork(ctx context.Context, r *record, s prison.Spec) error {
	if s.Network != prison.NetworkOpen {
		return nil
	}
	labels := map[string]string{labelKey: r.Key, labelID: s.ID, labelRole: rolePrison}
	return e.ensureNetwork(ctx, r.network(), network.CreateOptions{Driver: "bridge", Labels: labels})
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
	// Somebody else's end may remove it between the two.
	var err error
	for range 3 {
		if err = e.ensureNetwork(ctx, sinkName, sink); err != nil {
			return err
		}
		bounded, cancel := call(ctx)
		err = e.NetworkConnect(bounded, sinkName, id, nil)
		cancel()
		if !gone(err) {
			break
		}
	}
	if err != nil && !notNow(err) {
		return e.failed(ctx, "shut link-local addresses", err)
	}
	return nil
}

func (e *engine) ensureNetwork(ctx context.Context, name string, o network.CreateOptions) error {
	bounded, cancel := call(ctx)
	defer cancel()
	n, err := e.NetworkInspect(bounded, name, network.InspectOptions{})
	if err == nil {
		if n.Labels[labelRole] != o.Labels[labelRole] || n.Labels[labelKey] != o.Labels[labelKey] {
			return fmt.Errorf("network %q is somebody else's", name)
		}
		return nil
	}
	if !gone(err) {
		return e.failed(ctx, "inspect network", err)
	}
	_, err = e.NetworkCreate(bounded, name, o)
	if notNow(err) { // somebody was quicker
		return nil
	}
	return e.failed(ctx, "create network "+name, err)
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
		if err := e.NetworkRemove(bounded, n.ID); err != nil && !gone(err) {
			return e.failed(ctx, "remove network", err)
		}
	}
	return nil
}
