package land

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
)

// The steps at which a kill test can stop a landing, in order.
const (
	stepPrepared = "prepared"
	stepLocked   = "locked"
	stepJournal  = "journal"
	stepSwing    = "swing" // before each file
	stepTree     = "tree"
	stepRefs     = "refs"
	stepIndex    = "index"
)

// stopAt kills the process at the step that AIRLOCK_TEST_KILL names, so that tests can prove recovery from every
// step. A number after a colon selects the n-th time ("swing:3").
func stopAt(step string) {
	if want := os.Getenv("AIRLOCK_TEST_KILL"); want != "" && killNow(want, step) {
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	}
}

// killNow counts the calls for the wanted step, and reports whether this call is the selected one.
func killNow(want, step string) bool {
	name, nth, _ := strings.Cut(want, ":")
	if name != step {
		return false
	}
	return fmt.Sprint(kills.Add(1)) == nth || nth == ""
}

var kills atomic.Int64
