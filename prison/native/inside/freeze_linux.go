package inside

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

const (
	// freezePatience is how long all processes together may take to stop. A process that waits for a disk stops only afterwards.
	freezePatience = 10 * time.Second
	// vforkPatience is the time after which a process that does not stop may be waiting for a stopped child, see vfork(2).
	vforkPatience = 100 * time.Millisecond
	// freezePoll is the time between two checks of stopping processes. A process that the kernel calls stopped may have to leave its
	// processor yet, which changes its count of context switches. So the time is long enough for that.
	freezePoll = 3 * time.Millisecond
)

// freezer is the state of a freeze. With held, the freeze outlives the connection of the caller.
type freezer struct {
	mu    sync.Mutex            // held while a caller's connection controls the freeze
	held  bool                  // the processes stay frozen when the connection ends
	guard atomic.Pointer[guard] // nil if nothing is frozen
}

// freeze stops all processes. They go on when the caller disconnects or its process ends. If a caller has asked to hold them, they go on
// only when a caller asks for it. Requests to start or kill other processes wait meanwhile. A control group is not used, because it would
// also freeze init and the processes that the caller starts. So a [guard] checks that all stay stopped.
func (s *server) freeze(c wire.Conn) {
	f := &s.frozen
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.held {
		s.starting.Lock()
		before, all, err := stopAll()
		f.guard.Store(guardTasks(before, all))
		if err != nil {
			s.thaw()
			c.Send(wire.Reply{Error: err.Error()})
			return
		}
	}
	if c.Send(wire.Reply{}) == nil && s.serveFrozen(c) || !f.held {
		if reports := f.held; s.thaw() && reports {
			c.Write([]byte{wire.Moved}) //nolint:errcheck // the caller may have gone
		}
	}
}

// serveFrozen reads the bytes that the caller of freeze sends. It reports whether the caller asked for the thaw.
func (s *server) serveFrozen(c wire.Conn) bool {
	for b := []byte{0}; ; {
		if n, err := c.Read(b); n == 0 || err != nil {
			return false
		}
		switch b[0] {
		case wire.Hold:
			// The restore of a caller that has ended goes on in any case: half of it is worse.
			before := s.frozen.held
			if s.frozen.held = before || !s.frozen.guard.Load().moved(); !s.frozen.held {
				b[0] = wire.Moved
			}
			if _, err := c.Write(b); err != nil {
				s.frozen.held = before // a caller without the answer has changed nothing
				return false
			}
		case wire.Thaw:
			return true
		}
	}
}

// thaw lets the processes go on. It reports whether one went on before.
func (s *server) thaw() (moved bool) {
	f := &s.frozen
	g := f.guard.Swap(nil)
	moved = g.moved()
	g.finish()
	resume(g.stopped)
	f.held = false
	s.starting.Unlock()
	return moved
}

// stopAll stops all processes but init. It returns all processes before and after.
func stopAll() (before, all map[int]task, err error) {
	if before, err = listTasks(); err != nil {
		return nil, nil, err
	}
	var last map[int]task
	for begun := time.Now(); ; time.Sleep(freezePoll) {
		// The kernel signals all processes at once, and a fork in progress fails without making a process. So none is missed.
		unix.Kill(-1, unix.SIGSTOP) // there may be no process
		all, err = listTasks()
		moving := 0
		for pid, t := range all {
			if !t.stopped {
				moving = pid
			} else if !t.same(last[pid]) {
				moving = cmp.Or(moving, pid)
			}
		}
		last = all
		switch took := time.Since(begun); {
		case err != nil || moving == 0:
			return before, all, err
		case took > freezePatience:
			return before, all, fmt.Errorf("process %d does not stop", moving)
		case took > vforkPatience:
			resumeChildren(all)
		}
	}
}

// resumeChildren lets the stopped children of processes that do not stop go on for a moment: after vfork(2), a parent cannot stop
// before its child has executed a program.
func resumeChildren(all map[int]task) {
	for pid, t := range all {
		if parent, ok := all[t.parent]; ok && t.stopped && !parent.stopped {
			unix.Kill(pid, unix.SIGCONT) // it may have died
		}
	}
	time.Sleep(freezePoll)
}

// resume lets processes go on, children before their parents: so no shell sees that its child was stopped.
func resume(stopped map[int]task) {
	depth := func(pid int) (n int) {
		for t, ok := stopped[pid]; ok && n < len(stopped); t, ok = stopped[t.parent] {
			n++
		}
		return n
	}
	pids := make([]int, 0, len(stopped))
	depths := map[int]int{}
	for pid := range stopped {
		pids, depths[pid] = append(pids, pid), depth(pid)
	}
	slices.SortFunc(pids, func(a, b int) int { return cmp.Compare(depths[b], depths[a]) })
	for _, pid := range pids {
		unix.Kill(pid, unix.SIGCONT) // it may have died
	}
}
