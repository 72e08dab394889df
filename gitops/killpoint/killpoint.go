// Package killpoint lets a test kill this program at a named step, so that the test can prove recovery from that step.
package killpoint

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
)

// variable names the step. A number after a colon selects the n-th time ("swing:3").
const variable = "AIRLOCK_TEST_KILL"

// Reach kills the process if a test has selected this step.
func Reach(step string) {
	if want := os.Getenv(variable); want != "" && selected(want, step) {
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	}
}

// selected counts the calls for the wanted step, and reports whether this call is the selected one.
func selected(want, step string) bool {
	name, nth, _ := strings.Cut(want, ":")
	if name != step {
		return false
	}
	return fmt.Sprint(calls.Add(1)) == nth || nth == ""
}

var calls atomic.Int64
