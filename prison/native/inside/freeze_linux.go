package inside

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

const (
	// freezePatience is how long all processes together may take to stop. A process that waits for a disk stops only afterwards.
	freezePatience = 10 * time.Second
	// vforkPatience is the time after which a process that does not stop may be waiting for a stopped child, see vfork(2).
	vforkPatience = 100 * time.Millisecond
	freezePoll    = time.Millisecond
)

// freezer is the state of a freeze. With held, the freeze outlives the connection of the caller.
type freezer struct {
	mu      sync.Mutex   // held while a caller's connection controls the freeze
	held    bool         // the processes stay frozen when the connection ends
	stopped map[int]task // the processes that thaw lets go on, by pid
}

// freeze stops all processes. They go on when the caller disconnects or its process ends. If a caller has asked to hold them, they go on
// only when a caller asks for it. Requests to start other processes wait meanwhile. A control group is not used, because it would also
// freeze init and the processes that the caller starts.
func (s *server) freeze(c wire.Conn) {
	f := &s.frozen
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.held {
		s.starting.Lock()
		var err error
		if f.stopped, err = stopAll(); err != nil {
			s.thaw()
			c.Send(wire.Reply{Error: err.Error()})
			return
		}
	}
	if c.Send(wire.Reply{}) == nil && s.serveFrozen(c) || !f.held {
		s.thaw()
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
			s.frozen.held = true
			if _, err := c.Write(b); err != nil {
				return false
			}
		case wire.Thaw:
			return true
		}
	}
}

func (s *server) thaw() {
	resume(s.frozen.stopped)
	s.frozen.held, s.frozen.stopped = false, nil
	s.starting.Unlock()
}

// stopAll stops all processes but init. It returns those that were not stopped before.
func stopAll() (stopped map[int]task, err error) {
	before, err := listTasks()
	if err != nil {
		return nil, err
	}
	for begun := time.Now(); ; time.Sleep(freezePoll) {
		// The kernel signals all processes at once, and a fork in progress fails without making a process. So none is missed.
		unix.Kill(-1, unix.SIGSTOP) // there may be no process
		now, err := listTasks()
		moving := 0
		for pid, t := range now {
			if !t.stopped {
				moving = pid
			}
			if before[pid].stopped {
				delete(now, pid)
			}
		}
		stopped = now
		switch took := time.Since(begun); {
		case err != nil || moving == 0:
			return stopped, err
		case took > freezePatience:
			return stopped, fmt.Errorf("process %d does not stop", moving)
		case took > vforkPatience:
			resumeChildren(now)
		}
	}
}

// task is a process.
type task struct {
	parent  int
	stopped bool // all threads are stopped
}

// listTasks lists all processes but init, without those that are dead.
func listTasks() (map[int]task, error) {
	pids, err := walls.Numbers("/proc")
	if err != nil {
		return nil, err
	}
	all := map[int]task{}
	for _, pid := range pids {
		threads, err := walls.Numbers(fmt.Sprintf("/proc/%d/task", pid))
		if pid == 1 || err != nil {
			continue
		}
		t, alive := task{stopped: true}, false
		for _, thread := range threads {
			fields, err := walls.ThreadFields(pid, thread)
			if err != nil || len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
				continue
			}
			alive = true
			t.parent, _ = strconv.Atoi(fields[1])
			t.stopped = t.stopped && (fields[0] == "T" || fields[0] == "t")
		}
		if alive {
			all[pid] = t
		}
	}
	return all, nil
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
