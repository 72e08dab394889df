package ui

import (
	"os"
	"time"
)

// Variable returns a variable of the environment, empty if it is not set. The command and its rooms read the environment of the
// process here and through package hostenv, nowhere else.
func Variable(name string) string { return os.Getenv(name) }

// isSet reports whether a variable is set, if only to nothing.
func isSet(name string) bool {
	_, set := os.LookupEnv(name)
	return set
}

// Now is the clock of the command and its rooms, which below are handed it as a value.
func Now() time.Time { return time.Now() }
