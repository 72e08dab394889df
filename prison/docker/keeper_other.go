//go:build !linux

package docker

import (
	"context"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
)

const (
	device     = "/dev/net/tun"
	socketName = "control"
)

func resolver() string { return "" }

// checkNetwork refuses a network: the engine's containers run in another machine, from which no descriptor can be passed.
func checkNetwork(s prison.Spec) error {
	if s.Network == prison.NetworkNone {
		return nil
	}
	return dialect.Unavailable("a network needs an engine that shares this machine's kernel, which is Linux's",
		"git airlock start --network none")
}

func connectNetwork(context.Context, networkOrder) (wait func() error) {
	return func() error { return nil }
}
func reconnectNetwork(context.Context, networkOrder) {}
func endNetwork(context.Context, string) error       { return nil }

// Mend implements [prison.Mender]. It does nothing, since prisons have no network here.
func (*Backend) Mend(context.Context, prison.Spec, func()) {}

// Supply implements [prison.Mender].
func (*Backend) Supply(context.Context, prison.Spec) error { return prison.ErrNotRunning }
