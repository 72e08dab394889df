package network

import (
	"context"

	"github.com/git-airlock/git-airlock/prison/egress"
)

// lookUp looks the name of a question up as the network of a prison does, and decides about its addresses.
func lookUp(ctx context.Context, policy egress.Policy, q egress.Question) (all []Address, err error) {
	addresses, vetted, err := policy.LookUp(ctx, q)
	for i, a := range addresses {
		all = append(all, Address{a, vetted[i]})
	}
	return all, err
}

// vet returns an error for an address that a prison is not led to, although the rule allows it.
func vet(rule egress.Rule, address string) error { return rule.VetAddress(address) }
