package busy

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the interval for reading the processor time of a command.
const tick = 200 * time.Millisecond

// watch ends a process once it has used more than its processor time. It returns when the process has ended. setrlimit(2)
// would pass the limit on to the user's filters.
func (t *Meter) watch(p *os.Process) {
	clock := int32(^p.Pid<<3 | 2) // as from clock_getcpuclockid(3)
	for p.Signal(unix.Signal(0)) == nil {
		time.Sleep(tick)
		var used unix.Timespec
		if err := unix.ClockGettime(clock, &used); err != nil || time.Duration(used.Nano()) <= t.Most {
			continue
		}
		t.over.Store(true)
		_ = unix.Prlimit(p.Pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) // the signal would write a core file
		_ = p.Signal(unix.SIGXCPU)
	}
}
