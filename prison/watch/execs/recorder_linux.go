package execs

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

const (
	// tick is the pause between two rounds of tend while there is work. Most programs have ended before a round, and cost tend nothing.
	tick = 50 * time.Millisecond
	// quietTicks is how many rounds without work tend makes before it waits without a limit. A call that has to end such a wait takes
	// longer, but more rounds cost more if programs run in bursts: they also keep Go's scheduler awake.
	quietTicks = 2
	// checkAfter is the age at which a program is checked that has neither ended nor executed another one.
	checkAfter = 10 * time.Millisecond
	// writeAfter is the age at which a record is written before the program has ended.
	writeAfter = 100 * time.Millisecond
	// maxGone bounds the processes that are remembered after their end.
	maxGone = 256
)

// recorder keeps the record of a prison. The calls of each listener are handled by one goroutine ([answerer.answer]), and the ends of
// processes by another ([recorder.tend]), which also writes.
type recorder struct {
	rules   *Rules
	shared  *shared
	mask    func([]string) []string
	out     *file
	poll    poll
	outside namespace // the pid namespace of this process
	socket  wire.Conn // see [Complete]
	content budget    // of the digests

	answering sync.WaitGroup // the goroutines that answer
	mu        sync.Mutex
	drained   *sync.Cond // the queue has room again
	processes map[int]*process
	callers   map[int]*process // by threads that are not the first of their process, and whose call can have failed
	gone      map[int]origin   // processes that ended a moment ago, and may be parents of others
	held      int              // the size of all entries, in bytes
	queue     []Record
	queued    int   // its size, in bytes
	unused    []int // descriptors that tend closes
	idle      bool  // tend waits without a limit
	quiet     int   // ticks without work
}

// process is a process that has executed a program.
type process struct {
	origin
	pid, parent int      // pid is the number outside; parent and inside are numbers inside
	fd          int      // a pidfd
	watched     bool     // tend waits for its end
	calls       []*entry // calls of which it is not known yet which one was carried out
	first, last *entry   // programs that ran, whose records end with the process
	code        *int     // the exit status that a thread has passed to the kernel
}

// origin is the part of a process that its children need.
type origin struct {
	inside int // its number
	depth  int // 1 for a process that init has started
}

// entry is a call whose record can still change.
type entry struct {
	Record
	call    call
	thread  int       // that made the call
	before  image     // that the process executed before the call
	begun   time.Time // time of the call
	size    int       // in bytes
	written bool      // the record is in the file, without an end
}

// answerer answers the calls of one listener. A process has only one listener, so that no other goroutine handles its calls.
type answerer struct {
	*recorder
	listener listener
	slot     *slot
	within   namespace // the pid namespace inside, or -1 before it is opened
	all      bool      // this recorder has seen every program that one of the processes has executed
	hidden   []string  // see [Given]
	digests  digests
	proc     procfs
}

// answer handles calls until no process is left.
func (r *answerer) answer() {
	defer func() { r.within.close() }()
	n := &r.slot.now
	for e := unix.Errno(0); e == 0 || e == unix.ENOENT || e == unix.EINTR; e = r.listener.receive(n) {
		if n.id != 0 { // the first one was received by a previous recorder
			r.take(n)
			atomic.StoreUint64(&n.id, 0)
		}
		if !r.listener.await() {
			return
		}
	}
}

// take handles one call.
func (r *answerer) take(n *notification) {
	switch int(n.number) {
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
		r.execute(n)
	case unix.SYS_EXIT, unix.SYS_EXIT_GROUP:
		r.exit(n)
	default:
		r.listener.proceed(n)
	}
}

// execute handles a call of execve or execveat. It reads first: once the process continues, the call or a signal may replace its program,
// or end it.
func (r *answerer) execute(n *notification) {
	if r.slot.entering {
		r.listener.proceed(n)
		r.slot.entering = false
		return
	}
	c, check := readCall(n, r.proc.buffer[:])
	if check || slices.Contains(r.hidden, c.path) {
		r.listener.proceed(n)
		return
	}
	thread := int(n.thread)
	e := &entry{call: c, thread: thread, begun: time.Now()}
	e.CWD = r.proc.link("", thread, "/cwd")
	p, fresh := r.processOf(e)
	file := func() string { return r.proc.fileOf(thread, e.CWD, c) }
	digest := func() string { return r.digests.of(thread, e.CWD, c, func() bool { return r.listener.waits(n) }) }
	if rule := r.rules.refuses(e.CWD, c, file, digest); rule != "" {
		e.Deny = &rule
	}
	if r.answerCall(n, e) {
		r.enter(p, e, fresh)
	} else if fresh { // it was killed before it could execute anything
		unix.Close(p.fd)
	}
}

// answerCall lets a call continue, or refuses it. It reports whether the process was still waiting.
func (r *answerer) answerCall(n *notification, e *entry) bool {
	if e.Deny != nil {
		return r.listener.refuse(n, unix.EPERM)
	}
	return r.listener.proceed(n)
}

// processOf returns the process that makes a call, and stores in the entry what the process executes. fresh reports that it is not in the
// list of processes, usually since it has made no call before.
func (r *answerer) processOf(e *entry) (p *process, fresh bool) {
	group, fd := e.thread, -1
	if p = r.known(group); p == nil {
		if fd = openProcess(group); fd < 0 { // not the first thread of a process
			if group = r.group(e.thread); group != e.thread {
				if p = r.known(group); p == nil {
					fd = openProcess(group)
				}
			}
		}
	}
	if p != nil {
		e.before = r.review(p, e.thread)
		return p, false
	}
	p = &process{pid: group, fd: fd}
	p.inside = r.insideOf(p)
	parent, ok := parentOf(fd)
	if e.before = (image{forked: true}); !ok || !r.all || r.hasEnded(group) {
		e.before = r.proc.image(group)
		parent = e.before.parent
	}
	p.parent, p.depth = r.descent(parent)
	return p, true
}

// hasEnded reports whether a process with a number has ended a moment ago. It may be the same one: if one thread executes a program while
// another one ends the process, the process goes on.
func (r *recorder) hasEnded(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ended := r.gone[pid]
	return ended
}

// known returns a process that has made a call before, or nil.
func (r *recorder) known(pid int) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.processes[pid]
	if p == nil {
		return nil
	}
	if _, _, e := unix.RawSyscall6(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(p.fd), 0, 0, 0, 0, 0); e == unix.ESRCH {
		r.end(p, nil) // another process has the number now
		return nil
	}
	return p
}

// enter records a call that the kernel carries out now.
func (r *recorder) enter(p *process, e *entry, fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shared.seq++
	e.Seq, e.Time = r.shared.seq, e.begun.UTC().Truncate(time.Millisecond)
	e.PID, e.PPID, e.Path, e.Argv, e.Cut = p.inside, p.parent, e.call.path, e.call.argv, e.call.cut
	e.Top = p.depth == topDepth && p.first == nil
	e.size = e.Record.size()
	r.awaitRoom()
	if fresh && p.fd >= 0 {
		r.processes[p.pid] = p
		delete(r.gone, p.pid)
	}
	switch {
	case e.Deny != nil:
		r.push(e.Record)
	case r.processes[p.pid] == p && r.held+e.size <= maxHeld:
		r.hold(p, e)
	default: // the process was killed right after it had continued, or too many calls already wait for their results
		e.Disputed = true
		r.push(e.Record)
	}
	r.hurry()
}

// hurry ends a wait of tend without a limit. The caller holds the lock.
func (r *recorder) hurry() {
	if r.idle {
		r.idle = false
		r.poll.wake()
	}
}

// topDepth is the depth of the children of the launched command.
const topDepth = 2

// maxDescent bounds how many parents descent reads.
const maxDescent = 64

// descent returns the number that a parent has inside, and the depth of its children. For the depth, a process that has executed no
// program, such as a subshell, counts as the process above it. A process of an engine is outside, and has no number.
func (r *answerer) descent(parent int) (inside, depth int) {
	for range maxDescent {
		r.mu.Lock()
		from, ok := r.gone[parent]
		if p := r.processes[parent]; p != nil {
			from, ok = p.origin, true
		}
		r.mu.Unlock()
		n := ids{inside: from.inside}
		if !ok {
			n = r.proc.ids(parent)
		}
		if n.inside == 0 {
			return inside, 0
		}
		if inside == 0 && !n.outside {
			inside = n.inside
		}
		switch {
		case ok:
			return inside, from.depth + 1
		case n.inside == 1 || n.outside:
			return inside, 1
		}
		parent = n.parent
	}
	return inside, 0
}

// exit handles a call of exit or exit_group. It checks the program before its memory goes away.
func (r *answerer) exit(n *notification) {
	thread, whole := int(n.thread), int(n.number) == unix.SYS_EXIT_GROUP
	p := r.exiting(thread, whole)
	if p == nil {
		r.listener.proceed(n)
		return
	}
	now := time.Now()
	code := int(n.args[0] & 0xff)
	if len(r.pending(p)) > 0 {
		r.review(p, thread)
	}
	if whole || thread == p.pid {
		r.mu.Lock()
		p.code = &code
		r.mu.Unlock()
	}
	alive := r.listener.proceed(n)
	if alive && whole {
		r.mu.Lock()
		if r.processes[p.pid] == p && len(p.calls) == 0 { // otherwise another thread may execute a program first, see hasEnded
			r.end(p, &now)
		}
		r.mu.Unlock()
	}
}

// exiting returns the process of a thread that exits, or nil if it does not concern the record: neither the process ends, nor has the thread
// made a call that can have failed.
func (r *answerer) exiting(thread int, whole bool) *process {
	r.mu.Lock()
	p, caller := r.processes[thread], r.callers[thread]
	r.mu.Unlock()
	if p != nil || !whole && caller == nil {
		return p
	}
	group := r.group(thread)
	r.mu.Lock()
	defer r.mu.Unlock()
	if p = r.processes[group]; !whole && p != caller {
		return nil // a thread of another process had the number before
	}
	return p
}

// pending returns the calls of a process for which it is not known yet which one was carried out.
func (r *recorder) pending(p *process) []*entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.calls
}

// review finds out which of the calls of a process were carried out, and returns what the process executes. thread makes a call now, so its
// previous call has ended. review reads without the lock, so that tend need not wait.
func (r *answerer) review(p *process, thread int) image {
	calls := r.pending(p)
	now := r.proc.image(p.pid)
	changed := !now.failed && slices.ContainsFunc(calls, func(e *entry) bool { return !now.same(e.before) })
	var f found
	if changed {
		f = r.proc.inspect(p, calls, now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(p.calls) == 0: // tend has found the results already
	case now.failed: // it has ended, or this process has no descriptor left
		r.ran(p, found{})
	case changed:
		r.ran(p, f)
	default:
		r.failed(p, func(e *entry) bool { return e.thread == thread }, now)
	}
	return now
}

// found is a program that a process executes.
type found struct {
	exe   string // path of the file; empty if it is not known
	given given
	ok    bool // given is known
}

// inspect reads the program that a process executes after calls.
func (proc *procfs) inspect(p *process, calls []*entry, now image) (f found) {
	longest := 0
	for _, e := range calls {
		longest = max(longest, len(e.call.path))
	}
	m := memory{p.pid}
	if f.given, f.ok = m.given(now, longest); f.ok && !slices.ContainsFunc(calls, func(e *entry) bool { return e.call.gave(f.given) }) {
		f.given, _ = f.given.divided(now.argFrom, m.pointers(now.stack))
	}
	f.exe = proc.link("", p.pid, "/exe")
	return f
}

// readCall reads path and arguments of a call from the memory of the process, with a buffer. check reports that the call only checks
// a file.
func readCall(n *notification, buffer []byte) (c call, check bool) {
	m := memory{int(n.thread)}
	path, argv := n.args[0], n.args[1]
	at := false
	if int(n.number) == unix.SYS_EXECVEAT {
		if n.args[4]&executeCheck != 0 {
			return c, true
		}
		path, argv, at = n.args[1], n.args[2], true
	}
	var whole, all bool
	c.path, whole, c.argv, all = m.arguments(buffer, path, argv)
	if at {
		c.path = pathAt(int32(n.args[0]), c.path)
	}
	c.cut = !whole || !all
	return c, false
}
