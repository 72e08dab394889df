//go:build linux && !amd64 && !arm64

package native

import "errors"

// filterMissing says why there is no filter on this machine.
const filterMissing = "the system call filter is not written for this processor"

func filterSize() int { return 0 }

func installFilter() error { return errors.New(filterMissing) }
