//go:build !linux

package ui

import "os"

// UntilUnread returns false: on this system, only a failing write reports that the reader has gone.
func UntilUnread(*os.File) bool { return false }
