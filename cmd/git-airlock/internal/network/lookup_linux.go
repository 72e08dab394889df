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
