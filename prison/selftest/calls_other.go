//go:build !linux

package selftest

import "github.com/git-airlock/git-airlock/prison/calls"

// forbidden are known on the system whose they are.
var forbidden []calls.Call
