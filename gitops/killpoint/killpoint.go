// Package killpoint lets a test kill or stop this program at a named step, so that the test can prove recovery from that step, or act there.
package killpoint

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// variable names the step. A number after a colon selects the n-th time ("swing:3"). A path after an "@" lets the program make a file
// and stop until somebody has removed it.
const variable = "AIRLOCK_TEST_KILL"

// Reach kills or stops the process if a test has selected this step.
func Reach(step string) {
	want, file, stops := strings.Cut(os.Getenv(variable), "@")
	if want == "" || !selected(want, step) {
		return
	}
	if stops {
		stop(file)
		return
	}
	p, _ := os.FindProcess(os.Getpid())
	_ = p.Kill()
	select {}
}

// stop makes a file and returns when it is gone.
func stop(file string) {
	for err := os.WriteFile(file, nil, 0o600); err == nil; _, err = os.Lstat(file) {
		time.Sleep(time.Millisecond)
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
