//go:build !linux

package docker

import (
	"github.com/git-airlock/git-airlock/prison"
)

// checkOwner trusts the engine, which runs in a virtual machine with owners that this machine does not know.
func checkOwner(prison.Spec) error { return nil }

// folderOf returns nothing, for the same reason.
func folderOf(string) (folder, owner string) { return "", "" }
