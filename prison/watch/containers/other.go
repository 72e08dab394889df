//go:build !linux

package containers

import "context"

// Files are the files of a record. There are none here.
var Files []string

// Order describes a record to begin.
type Order struct {
	Dir, Container string
	First          int
	Deny, Env      []string
}

// Check returns an error: the engine's processes are on another kernel.
func Check() error { return ErrElsewhere }

// Expect does nothing, since nothing is recorded here.
func Expect(string) error { return nil }

// Start returns an error, as Check does.
func Start(context.Context, Order) error { return ErrElsewhere }

// Recorded returns false.
func Recorded(string) bool { return false }

// Alive returns false.
func Alive(string) bool { return false }

// AliveElsewhere returns false.
func AliveElsewhere(string) bool { return false }

// Follow returns an error, as Check does.
func Follow(string, int, []string) error { return ErrElsewhere }

// First returns zero.
func First(string) int { return 0 }

// Runs returns false.
func Runs(string, int) bool { return false }

// End does nothing.
func End(context.Context, string) error { return nil }

// EndLeft does nothing.
func EndLeft(context.Context, string, int) []int { return nil }
