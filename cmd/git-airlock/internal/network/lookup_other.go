//go:build !linux

package network

import (
	"context"
	"errors"

	"github.com/git-airlock/git-airlock/prison/egress"
)

// lookUp works only where native prisons do.
func lookUp(context.Context, egress.Rule, string) ([]Address, error) {
	return nil, errors.ErrUnsupported
}
