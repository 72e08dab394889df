//go:build !linux

package selftest

import "github.com/git-airlock/git-airlock/prison/calls"

// forbidden is empty here, because its calls exist only on Linux.
var forbidden []calls.Call
