//go:build !linux

package network

import (
	"context"
	"errors"

	"github.com/git-airlock/git-airlock/prison/egress"
)

// lookUp works only on Linux.
func lookUp(context.Context, egress.Policy, egress.Question) ([]Address, error) {
	return nil, errors.ErrUnsupported
}

// vet works only on Linux.
func vet(egress.Rule, string) error { return nil }
