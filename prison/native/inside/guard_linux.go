package inside

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/native/walls"

	"golang.org/x/sys/unix"
)

// guard checks that stopped processes stay stopped, because a process can have a timer that sends it SIGCONT (timer_create(2)), and can
// stop itself again. The kernel counts how often each thread has left its processor. The count of a stopped thread does not change.
// So the guard finds each process that went on, however seldom it checks.
type guard struct {
	mu      sync.Mutex
	all     map[int]task // what the processes were at the last check, by pid
	stopped map[int]task // the processes that thaw lets go on
	ours    map[int]bool // the processes that init has started meanwhile
	went    bool         // a process went on, began or ended
	end     chan struct{}
}

// checkPause is the time between two checks of stopped processes. It is longer if a check takes long.
const checkPause = 3 * time.Millisecond

// guardTasks begins to check all processes. Those that were stopped before stay stopped in the end.
func guardTasks(before, all map[int]task) *guard {
	g := &guard{all: all, stopped: maps.Clone(all), ours: map[int]bool{}, end: make(chan struct{})}
	maps.DeleteFunc(g.stopped, func(pid int, _ task) bool { return before[pid].stopped })
	go func() {
		for pause := checkPause; ; {
			select {
			case <-g.end:
				return
			case <-time.After(pause):
			}
			begun := time.Now()
			g.moved()
			pause = max(checkPause, 10*time.Since(begun))
		}
	}()
	return g
}

func (g *guard) finish() {
	close(g.end)
	g.mu.Lock() // a check may be in progress
	defer g.mu.Unlock()
	g.all = nil
}

// start calls a function that starts a process for the caller, and lets that process run.
func (g *guard) start(do func() (pid int, err error)) {
	if g == nil {
		do() //nolint:errcheck // the function keeps its results
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if pid, err := do(); err == nil {
		g.ours[pid] = true
	}
}

// moved checks all processes, stops those that run, and reports whether one of them has run since the freeze. It lets a host process
// continue that another process has stopped.
func (g *guard) moved() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		return g.went
	}
	now, err := listTasks()
	if err != nil {
		g.went = true
		return true
	}
	for pid, t := range now {
		switch {
		case g.ours[pid] || g.ours[t.parent]:
			if t.paused {
				unix.Kill(pid, unix.SIGCONT)
			}
			delete(now, pid)
		case !t.stopped || !t.same(g.all[pid]):
			unix.Kill(pid, unix.SIGSTOP)
			g.went, g.stopped[pid] = true, t
		}
	}
	for pid := range g.all {
		if _, there := now[pid]; !there {
			g.went = true
		}
	}
	g.all = now
	return g.went
}

// task is a process.
type task struct {
	parent  int
	stopped bool              // all threads are stopped
	paused  bool              // a thread is stopped
	counts  map[int][2]string // how often each thread has left its processor, by its own will and otherwise
}

// same reports whether no thread has run since.
func (t task) same(earlier task) bool { return maps.Equal(t.counts, earlier.counts) }

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
		t := task{stopped: true, counts: map[int][2]string{}}
		for _, thread := range threads {
			t.add(pid, thread)
		}
		if len(t.counts) > 0 {
			all[pid] = t
		}
	}
	return all, nil
}

// add adds a thread that is not dead, see proc_pid_status(5).
func (t *task) add(pid, thread int) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, thread))
	if err != nil {
		return
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	state := fields["State"]
	if state == "" || state[0] == 'Z' || state[0] == 'X' {
		return
	}
	t.parent, _ = strconv.Atoi(fields["PPid"])
	stopped := state[0] == 'T' || state[0] == 't'
	t.stopped, t.paused = t.stopped && stopped, t.paused || stopped
	t.counts[thread] = [2]string{fields["voluntary_ctxt_switches"], fields["nonvoluntary_ctxt_switches"]}
}
