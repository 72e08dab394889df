package inside

import (
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/gitops/procstat"
	"github.com/git-airlock/git-airlock/prison/native/walls"

	"golang.org/x/sys/unix"
)

// processes starts processes and reaps all of them, including orphans, whose parent is now PID 1. It replaces
// os/exec, which waits for its own children only, and would miss them because the reaper waits for all.
type processes struct {
	agent phantom
	forks chan func() // calls for the one thread that starts processes
	mu    sync.Mutex
	waits map[int]chan int // channels for exit statuses, by pid
	child chan os.Signal
	// listener receives the descriptor to which the kernel sends the calls of a recorded prison.
	listener chan madeListener
}

// madeListener is the result of [walls.ListenToPrograms].
type madeListener struct {
	file *os.File
	err  error
}

func newProcesses(agent phantom, record bool) *processes {
	p := &processes{
		agent: agent, forks: make(chan func()), waits: map[int]chan int{}, child: make(chan os.Signal, 1),
		listener: make(chan madeListener, 1),
	}
	signal.Notify(p.child, unix.SIGCHLD)
	go p.fork(record)
	return p
}

// fork starts all processes from one thread, from which they inherit no capabilities, and the filter of a recorded prison. Init's
// other threads do not have that filter.
func (p *processes) fork(record bool) {
	runtime.LockOSThread()
	if err := p.agent.keepPrivileges(); err != nil {
		panic(err) // the agent must not have a right of init's
	}
	if record {
		file, err := walls.ListenToPrograms()
		p.listener <- madeListener{file, err}
	}
	for start := range p.forks {
		start()
	}
}

// starting is a program to start.
type starting struct {
	path      string
	argv, env []string
	dir       string
	files     []*os.File
	tty       bool
	guarded   bool // the agent's processes cannot signal it, see [phantom.guarded]
}

// start runs a program in a session of its own, and sends the exit status to the channel. It holds the lock from
// fork until the pid is in waits, so that the reaper cannot find a pid that is not there yet.
func (p *processes) start(s starting) (pid int, exited <-chan int, err error) {
	fds := make([]uintptr, len(s.files))
	for i, f := range s.files {
		fds[i] = f.Fd()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	forked := make(chan struct{})
	p.forks <- func() {
		defer close(forked)
		attr := &syscall.ProcAttr{
			Dir: s.dir, Env: s.env, Files: fds,
			Sys: &syscall.SysProcAttr{Setsid: true, Setctty: s.tty, Credential: p.agent.credential()},
		}
		fork := func() { pid, err = syscall.ForkExec(s.path, s.argv, attr) }
		if !s.guarded || p.agent == 0 {
			fork()
			return
		}
		attr.Sys.Credential = nil
		if changed := p.agent.guarded(fork); changed != nil {
			err = changed
		}
	}
	<-forked
	if err != nil {
		return 0, nil, err
	}
	status := make(chan int, 1)
	p.waits[pid] = status
	return pid, status, nil
}

// reap reaps dead processes, and never returns. One SIGCHLD may stand for several of them.
func (p *processes) reap() {
	for range p.child {
		p.mu.Lock()
		for {
			var ws unix.WaitStatus
			pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
			if err == unix.EINTR {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
			if status := p.waits[pid]; status != nil {
				delete(p.waits, pid)
				status <- exitStatus(ws)
			}
		}
		p.mu.Unlock()
	}
}

func exitStatus(ws unix.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// hangUp sends SIGHUP to a process with its session and all its descendants, once, and returns them. SIGCONT lets a stopped process
// obey.
func (p *processes) hangUp(leader int) (told map[int]bool) {
	p.mu.Lock() // nothing is reaped meanwhile, so no pid can be reused
	defer p.mu.Unlock()
	told = map[int]bool{}
	if p.waits[leader] == nil {
		return told
	}
	told[leader] = true
	for range 50 {
		if findTree(told, leader) == 0 {
			break
		}
	}
	for pid := range told {
		unix.Kill(pid, unix.SIGHUP)
		unix.Kill(pid, unix.SIGCONT)
	}
	return told
}

// kill ends a process with its session and all its descendants. It does not find a descendant that has left the
// session and whose parent has died; such a process ends with the prison. It repeats the search until a search
// after the death of all processes found before finds no new one: a killed process may still complete a fork.
func (p *processes) kill(leader int) {
	p.mu.Lock() // nothing is reaped meanwhile, so no pid can be reused
	defer p.mu.Unlock()
	doomed := map[int]bool{}
	if p.waits[leader] != nil {
		doomed[leader] = true
		unix.Kill(leader, unix.SIGKILL)
	}
	for range 50 {
		dead := allDead(doomed)
		found := findTree(doomed, leader)
		if found == 0 && dead {
			return
		}
		for pid := range doomed {
			unix.Kill(pid, unix.SIGKILL)
		}
		if found == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// allDead reports whether none of the processes runs any more.
func allDead(pids map[int]bool) bool {
	for pid := range pids {
		if _, _, alive := family(pid); alive {
			return false
		}
	}
	return true
}

// findTree adds the living members of leader's session and the children of processes in doomed. It returns the
// number of processes that it added.
func findTree(doomed map[int]bool, leader int) (found int) {
	pids, err := walls.Numbers("/proc")
	if err != nil {
		unix.Kill(-leader, unix.SIGKILL)
		return 0
	}
	for _, pid := range pids {
		if pid == 1 || doomed[pid] {
			continue
		}
		parent, session, ok := family(pid)
		if ok && (session == leader || doomed[parent]) {
			doomed[pid] = true
			found++
		}
	}
	return found
}

// family returns the parent and the session of a process, if the process is not dead.
func family(pid int) (parent, session int, ok bool) {
	fields, err := procstat.Fields(pid)
	if err != nil || len(fields) < 4 || fields[0] == "Z" {
		return 0, 0, false
	}
	parent, _ = strconv.Atoi(fields[1])
	session, _ = strconv.Atoi(fields[3])
	return parent, session, true
}
