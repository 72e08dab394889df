package network

import (
	"context"
	"errors"
	"net/netip"
	"syscall"

	"github.com/git-airlock/git-airlock/prison/egress"
	"github.com/git-airlock/git-airlock/prison/egress/route"
)

// lookUp looks a name up as the network of a prison does, and vets its addresses.
func lookUp(ctx context.Context, rule egress.Rule, name string) (all []Address, err error) {
	addresses, vetted, err := rule.LookUp(ctx, name)
	for i, a := range addresses {
		all = append(all, Address{a, vetted[i]})
	}
	return all, err
}

// own returns an error for an address of this machine. An address without a route is not one.
func own(a netip.Addr) error {
	err := route.Check(a)
	if _, unreached := errors.AsType[syscall.Errno](err); unreached {
		return nil
	}
	return err
}
