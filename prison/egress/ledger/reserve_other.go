//go:build !linux

package ledger

import "os"

// reserve does nothing on systems without fallocate(2).
func reserve(*os.File, int64, int64) error { return nil }
