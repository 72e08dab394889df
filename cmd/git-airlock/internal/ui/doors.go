package ui

import (
	"os"
	"time"
)

// Variable returns an environment variable, or an empty string if it is not set. The command and its internal packages read the
// environment of the process only here and through package hostenv.
func Variable(name string) string { return os.Getenv(name) }

// isSet reports whether a variable is set, possibly to an empty value.
func isSet(name string) bool {
	_, set := os.LookupEnv(name)
	return set
}

// Now is the clock of the command and its internal packages. Other packages get times as arguments.
func Now() time.Time { return time.Now() }
