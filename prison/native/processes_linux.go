package native

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processes starts processes and reaps all of them, also the orphans that PID 1 inherits: os/exec
// would wait for its own only, and a second waiter would steal them from it.
type processes struct {
	mu    sync.Mutex
	waits map[int]chan int // pid to where its exit status goes
	child chan os.Signal
}

func newProcesses() *processes {
	p := &processes{waits: map[int]chan int{}, child: make(chan os.Signal, 1)}
	signal.Notify(p.child, unix.SIGCHLD)
	return p
}

// start runs a program in a session of its own. Its exit status arrives on the channel. The lock spans
// fork and entry, so that the reaper cannot meet a pid before it is known.
func (p *processes) start(path string, argv, env []string, dir string, files []*os.File, tty bool) (pid int, exited <-chan int, err error) {
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = f.Fd()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pid, err = syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Dir: dir, Env: env, Files: fds,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: tty},
	})
	if err != nil {
		return 0, nil, err
	}
	status := make(chan int, 1)
	p.waits[pid] = status
	return pid, status, nil
}

// reap collects the dead for ever. One SIGCHLD may stand for many of them.
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

// kill ends a process with its session and all its descendants. A descendant whose parent has died
// and that has left the session is not found: it ends with the prison. It repeats until a look
// finds nothing new after all that were found before were dead: one that was killed may still finish to fork.
func (p *processes) kill(leader int) {
	p.mu.Lock() // nothing is reaped meanwhile, so no pid found can become another process's
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

// allDead reports whether none of some processes runs any more.
func allDead(pids map[int]bool) bool {
	for pid := range pids {
		if _, _, alive := family(pid); alive {
			return false
		}
	}
	return true
}

// findTree adds the living members of leader's session and the children of the doomed, and returns
// how many there were to add.
func findTree(doomed map[int]bool, leader int) (found int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		unix.Kill(-leader, unix.SIGKILL)
		return 0
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == 1 || doomed[pid] {
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

// family reads the parent and the session of a process that is not dead from proc_pid_stat(5); the name in parentheses may
// hold anything, so the fields count from the last one.
func family(pid int) (parent, session int, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	rest, ok := afterLast(string(stat), ")")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 4 || fields[0] == "Z" {
		return 0, 0, false
	}
	parent, _ = strconv.Atoi(fields[1])
	session, _ = strconv.Atoi(fields[3])
	return parent, session, true
}

// afterLast returns what follows the last separator.
func afterLast(s, sep string) (after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", false
	}
	return s[i+len(sep):], true
}
