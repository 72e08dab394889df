package execs

import (
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// poll waits for the ends of processes and for messages. Its fields are descriptors.
type poll struct{ epoll, event, link int }

// Tags of other events than the end of a process, in place of its number.
const (
	eventTag  = -1
	linkTag   = -2
	socketTag = -3
)

func newPoll(link wire.Conn) (p poll, err error) {
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return p, err
	}
	if p.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return p, err
	}
	p.add(p.event, eventTag)
	p.link = int(link.Fd())
	p.add(p.link, linkTag)
	return p, nil
}

// add makes wait return the events of a descriptor. If that fails, the record of the process stays without an end.
func (p poll) add(fd, tag int) {
	unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(tag)}) //nolint:errcheck
}

func (p poll) remove(fd int) {
	unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil) //nolint:errcheck // it was added
}

// wait waits for events. Go's scheduler does not know of a wait with a limit, see soon.
func (p poll) wait(events []unix.EpollEvent, ms int) (int, error) {
	if ms < 0 {
		return unix.EpollWait(p.epoll, events, ms)
	}
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(ms), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// wake ends the wait.
func (p poll) wake() {
	one := binary.NativeEndian.AppendUint64(nil, 1)
	unix.Write(p.event, one) //nolint:errcheck // it is awake already
}

// awake removes the event of wake.
func (p poll) awake() {
	var b [8]byte
	unix.Read(p.event, b[:]) //nolint:errcheck // it was read before
}

// tend watches the ends of processes and writes records, until the keeper has closed its link and the prison has ended. It calls closed
// when the link is closed.
func (r *recorder) tend(link wire.Conn, closed func()) {
	var proc procfs
	events := make([]unix.EpollEvent, 64)
	answered := make(chan struct{})
	for open := true; open || !isClosed(answered); {
		n, err := r.poll.wait(events, r.patience())
		for _, e := range events[:max(n, 0)] {
			switch tag := int(e.Fd); tag {
			case eventTag:
				r.poll.awake()
			case linkTag:
				if open = r.hear(link); !open {
					closed()
					r.poll.remove(r.poll.link)
					go r.awaitAnswers(answered)
				}
			case socketTag:
				r.hearReader(&proc, open)
			default:
				r.died(&proc, tag)
			}
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return // a successor goes on
		}
		r.check(&proc)
		r.flush()
	}
	r.finish(&proc)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// awaitAnswers closes a channel when all calls have been answered and recorded. A listener has no more calls when no process with its
// filter is left, so only the end of the prison ends the wait.
func (r *recorder) awaitAnswers(answered chan<- struct{}) {
	r.answering.Wait()
	close(answered)
	r.poll.wake()
}

// finish writes the ends of processes that died with the prison. Their status is known a moment after the end of their listener.
func (r *recorder) finish(proc *procfs) {
	for _, p := range r.running() {
		wire.AwaitEnd(p.fd)
		r.died(proc, p.pid)
	}
	r.flush()
}

// running returns the processes whose end is not known.
func (r *recorder) running() []*process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.processes))
}

// patience returns how long to wait for an event, in milliseconds. It is -1, without a limit, after quietTicks rounds without work.
func (r *recorder) patience() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.quiet++; r.busy() {
		r.quiet = 0
	}
	if r.idle = r.quiet > quietTicks; r.idle {
		return -1
	}
	return int(tick.Milliseconds())
}

// busy reports whether something has to be checked or written.
func (r *recorder) busy() bool {
	if len(r.queue) > 0 {
		return true
	}
	for _, p := range r.processes {
		if len(p.calls) > 0 || p.unwritten() || !p.watched {
			return true
		}
	}
	return false
}

func (p *process) unwritten() bool {
	return p.first != nil && !p.first.written || p.last != nil && !p.last.written
}

// died finishes a process that has ended by a signal, or whose last thread has ended.
func (r *recorder) died(proc *procfs, pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.processes[pid]
	if p == nil || !wire.HasEnded(p.fd) { // its number belongs to another one now
		return
	}
	if status, ok := waitStatus(proc, p); ok {
		code := unix.WaitStatus(status).ExitStatus()
		if s := unix.WaitStatus(status); s.Signaled() {
			code = 128 + int(s.Signal())
		}
		p.code = &code
	}
	r.end(p, nil)
}

// waitStatus returns the status with which a process has ended. Its parent may have taken the status already, and kernels before 6.15 then
// forget it.
func waitStatus(proc *procfs, p *process) (status int, ok bool) {
	if m := proc.image(p.pid); !m.failed && m.ended && unix.PidfdSendSignal(p.fd, 0, nil, 0) == nil {
		return m.status, true
	}
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(p.fd), unix.PIDFD_GET_INFO, uintptr(unsafe.Pointer(&info)))
	return int(info.Exit_code), e == 0 && info.Mask&unix.PIDFD_INFO_EXIT != 0
}

// check checks programs that have run for checkAfter, and queues the records of programs that have run for writeAfter.
func (r *recorder) check(proc *procfs) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, p := range r.processes {
		if !p.watched { // only now, since most programs have ended before
			r.poll.add(p.fd, p.pid)
			p.watched = true
		}
		if len(p.calls) > 0 && now.Sub(p.calls[len(p.calls)-1].begun) >= checkAfter {
			r.checkRunning(proc, p, now)
		}
		for _, e := range []*entry{p.first, p.last} {
			if e != nil && !e.written && now.Sub(e.begun) >= writeAfter {
				e.written = true
				r.push(e.Record)
			}
		}
	}
}

// checkRunning checks a program while it runs. The kernel may still be loading it, so that a difference counts only after writeAfter.
func (r *recorder) checkRunning(proc *procfs, p *process, now time.Time) {
	m := proc.image(p.pid)
	if m.failed || m.ended || m.unreadable || !m.complete() || unix.PidfdSendSignal(p.fd, 0, nil, 0) != nil {
		return
	}
	if slices.ContainsFunc(p.calls, func(e *entry) bool { return m.same(e.before) }) {
		r.checkThreads(proc, p, now)
		return
	}
	f := proc.inspect(p, p.calls, m)
	last := p.calls[len(p.calls)-1]
	if f.ok && last.call.gave(f.given) || now.Sub(last.begun) >= writeAfter {
		r.ran(p, f)
	}
}

// checkThreads checks whether threads have left their calls, some time after they began. Those calls have failed if the process executes the
// same program afterwards. Nothing is known of the call of a thread that does not exist any more and has not called exit, for example because
// a filter of the process has killed it, or since it is about to become the only thread of a new program.
func (r *recorder) checkThreads(proc *procfs, p *process, now time.Time) {
	left, lost := map[*entry]bool{}, map[*entry]bool{}
	for _, e := range p.calls {
		if now.Sub(e.begun) >= writeAfter {
			number, exists := proc.callOf(p.pid, e.thread)
			left[e], lost[e] = exists && number != unix.SYS_EXECVE && number != unix.SYS_EXECVEAT, !exists
		}
	}
	m := proc.image(p.pid)
	if m.failed || m.ended || unix.PidfdSendSignal(p.fd, 0, nil, 0) != nil {
		return
	}
	r.failed(p, func(e *entry) bool {
		e.Disputed = lost[e]
		return (lost[e] || left[e]) && m.same(e.before)
	}, m)
}

// flush writes the queue.
func (r *recorder) flush() {
	r.mu.Lock()
	queue, unused := r.queue, r.unused
	r.queue, r.queued, r.unused = nil, 0, nil
	r.drained.Broadcast()
	r.mu.Unlock()
	for _, fd := range unused {
		unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) //nolint:errcheck // a pidfd
	}
	if len(queue) == 0 {
		return
	}
	for i := range queue {
		queue[i].hide(r.mask)
	}
	r.out.append(queue) //nolint:errcheck // a full disk: the missing numbers show what was lost
}

// write writes to a file on a disk in system calls that Go's scheduler does not know of. After a call that it knows of, the scheduler wakes
// up every 20 µs for a while.
func write(f *os.File, b []byte) (done int, err error) {
	for done < len(b) {
		n, _, e := unix.RawSyscall(unix.SYS_WRITE, f.Fd(), uintptr(unsafe.Pointer(&b[done])), uintptr(len(b)-done))
		switch e {
		case 0:
			done += int(n)
		case unix.EINTR:
		default:
			return done, e
		}
	}
	return done, nil
}

// hide masks secrets. It finds a secret also if the program has overwritten a comma in it, see [call.known].
func (r *Record) hide(mask func([]string) []string) {
	if mask == nil {
		return
	}
	asked := func(word string) string { return strings.ReplaceAll(word, "\x00", ",") }
	words := []string{r.Path}
	for _, word := range r.Argv {
		words = append(words, asked(word))
	}
	words = mask(words)
	for i, word := range r.Argv {
		if words[i+1] == asked(word) {
			words[i+1] = word
		}
	}
	r.Path, r.Argv = words[0], words[1:]
	if r.Exe != nil {
		exe := mask([]string{*r.Exe})[0]
		r.Exe = &exe
	}
	r.CWD = mask([]string{r.CWD})[0]
}

// pathAt returns the path that the kernel gives to a program that execveat executes.
func pathAt(dir int32, name string) string {
	if dir == unix.AT_FDCWD || path.IsAbs(name) {
		return name
	}
	at := "/dev/fd/" + strconv.Itoa(int(dir))
	if name == "" {
		return at
	}
	return at + "/" + name
}
