package land

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
)

// Steps, in order, at which a kill test can stop a landing.
const (
	stepPrepared = "prepared"
	stepLocked   = "locked"
	stepJournal  = "journal"
	stepSwing    = "swing" // before each file
	stepTree     = "tree"
	stepRefs     = "refs"
	stepIndex    = "index"
)

// stopAt kills the process at the named step when AIRLOCK_TEST_KILL names it, so that tests can
// prove that every step is recovered from. A number after a colon picks the n-th time ("swing:3").
func stopAt(step string) {
	if want := os.Getenv("AIRLOCK_TEST_KILL"); want != "" && killNow(want, step) {
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	}
}

// killNow counts the calls for the wanted step and reports whether this is the one.
func killNow(want, step string) bool {
	name, nth, _ := strings.Cut(want, ":")
	if name != step {
		return false
	}
	return fmt.Sprint(kills.Add(1)) == nth || nth == ""
}

var kills atomic.Int64
