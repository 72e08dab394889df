//go:build !linux

package network

import (
	"context"
	"errors"
	"net/netip"

	"github.com/git-airlock/git-airlock/prison/egress"
)

// lookUp works only on Linux.
func lookUp(context.Context, egress.Rule, string) ([]Address, error) {
	return nil, errors.ErrUnsupported
}

// own works only on Linux.
func own(netip.Addr) error { return nil }
