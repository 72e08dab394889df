package network

import (
	"context"

	"github.com/git-airlock/git-airlock/prison/egress"
)

// lookUp looks a name up as the network of a prison does, and vets its addresses.
func lookUp(ctx context.Context, rule egress.Rule, name string) (all []Address, err error) {
	addresses, vetted, err := rule.LookUp(ctx, name)
	for i, a := range addresses {
		all = append(all, Address{a, vetted[i]})
	}
	return all, err
}

// vet returns an error for an address that a prison is not led to, although the rule allows it.
func vet(rule egress.Rule, address string) error { return rule.VetAddress(address) }
