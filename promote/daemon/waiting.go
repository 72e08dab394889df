package daemon

import (
	"fmt"
	"strconv"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

const (
	// silentTime is the time after which a command names the process that it waits for.
	silentTime = time.Second
	// stoppedTime bounds the wait for a process that is stopped (SIGSTOP, ^Z), and workTime the wait for one that works: a
	// landing takes as long as the user's filters.
	stoppedTime = 3 * time.Second
	workTime    = 10 * time.Minute
)

// BusyError reports that a command has given up waiting for a lock of another process.
type BusyError struct {
	Holder Holder
	Waited time.Duration
}

func (e *BusyError) Error() string {
	if e.Holder.Stopped {
		return fmt.Sprintf("%s is stopped in the middle of its work, and keeps others from theirs", e.Holder)
	}
	return fmt.Sprintf("%s has kept others from their work for %s", e.Holder, e.Waited.Round(time.Second))
}

// Unwrap returns [airlock.ErrBusy].
func (e *BusyError) Unwrap() error { return airlock.ErrBusy }

// Next returns the commands to type.
func (e *BusyError) Next() []string {
	next := []string{"git airlock status", "git airlock clear --discard-pending  # ends it"}
	if e.Holder.Stopped {
		next[0] = "kill -CONT " + strconv.Itoa(e.Holder.PID)
	}
	return next
}

// Holder is a process that holds a lock.
type Holder struct {
	PID     int    // 0 if it is not known
	Command string // the program, and the subcommand of git-airlock
	Stopped bool   // by a signal or a debugger
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "another git airlock command"
	}
	if h.Command == "" { // it has just ended
		return fmt.Sprintf("process %d", h.PID)
	}
	return fmt.Sprintf("process %d (%s)", h.PID, gitops.Text(h.Command))
}

// Waiting returns a function for [airlock.Store.WithWaiting]. The function prints once for which process the caller waits. It ends the wait
// with a [*BusyError] if that process is stopped, or after workTime.
func Waiting(say func(format string, args ...any)) airlock.Waiting {
	var told int
	var stoppedSince time.Duration
	return func(file string, waited time.Duration) error {
		if waited < silentTime {
			told, stoppedSince = -1, 0
			return nil
		}
		h := holderOf(file)
		if !h.Stopped {
			stoppedSince = waited
		}
		if h.PID != told {
			told = h.PID
			why := ""
			if h.Stopped {
				why = ", which is stopped"
			}
			say("waiting for %s%s", h, why)
		}
		if waited-stoppedSince >= stoppedTime || waited >= workTime {
			return &BusyError{h, waited}
		}
		return nil
	}
}
