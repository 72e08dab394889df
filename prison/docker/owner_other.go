//go:build !linux

package docker

import "github.com/git-airlock/git-airlock/prison"

// checkOwner trusts the engine: it runs in a machine of its own, which shows owners that this one does not know.
func checkOwner(prison.Spec) error { return nil }
