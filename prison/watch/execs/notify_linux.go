package execs

import (
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is struct seccomp_notif.
type notification struct {
	id      uint64
	thread  uint32 // its number outside
	flags   uint32
	number  int32
	arch    uint32
	pointer uint64
	args    [6]uint64
}

// answer is struct seccomp_notif_resp.
type answer struct {
	id    uint64
	value int64
	error int32
	flags uint32
}

const (
	setFlags   = 0x40082104 // SECCOMP_IOCTL_NOTIF_SET_FLAGS
	wakeInSync = 1          // SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
	// executeCheck is AT_EXECVE_CHECK: the call only checks whether a file could be executed.
	executeCheck = 0x10000
)

// listener is the descriptor to which the kernel sends the calls of a prison.
type listener int

// prepare makes the kernel wake the other side on the same processor, which takes half the time. Older kernels cannot.
func (l listener) prepare() {
	unix.Syscall(unix.SYS_IOCTL, uintptr(l), setFlags, wakeInSync) //nolint:errcheck // without it, answers are only slower
}

// receive takes a call that waits. It returns ENOENT if the process was killed meanwhile.
func (l listener) receive(n *notification) unix.Errno {
	*n = notification{} // the kernel refuses anything else
	_, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(n)))
	return e
}

// await waits for a call, and returns false when no process is left.
func (l listener) await() bool {
	p := []unix.PollFd{{Fd: int32(l), Events: unix.POLLIN}}
	if l.awaitSoon(&p[0]) {
		return p[0].Revents&unix.POLLIN != 0
	}
	for {
		if _, err := unix.Poll(p, -1); err != unix.EINTR {
			return err == nil && p[0].Revents&unix.POLLIN != 0
		}
	}
}

// soon is how long a thread waits for the next call before it tells Go's scheduler that it waits. Programs often start one after the other,
// and a wait that the scheduler knows of costs more than a call.
const soon = 100 * time.Millisecond

// waiters counts the threads in awaitSoon. Each of them holds a processor of Go's scheduler, of which others need some, too.
var waiters atomic.Int32

// maxWaiters bounds the threads in awaitSoon. With tend, they use three of the four processors that a recorder has.
const maxWaiters = 2

// awaitSoon waits for at most soon, and reports whether an event has come.
func (l listener) awaitSoon(p *unix.PollFd) bool {
	defer waiters.Add(-1)
	if waiters.Add(1) > maxWaiters {
		return false
	}
	limit := unix.NsecToTimespec(int64(soon))
	n, _, e := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(p)), 1, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	return e == 0 && n == 1
}

// events returns the events that are there, without a wait.
func (l listener) events() int16 {
	p := []unix.PollFd{{Fd: int32(l), Events: unix.POLLIN}}
	if n, err := unix.Poll(p, 0); err != nil || n == 0 {
		return 0
	}
	return p[0].Revents
}

// waits reports whether the process still waits for the answer to a call. The kernel does not carry out a call whose process does not.
func (l listener) waits(n *notification) bool {
	_, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&n.id)))
	return e != unix.ENOENT
}

// proceed lets a call continue. It reports whether the process was still waiting.
func (l listener) proceed(n *notification) bool {
	return l.send(answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

// refuse makes a call fail. It reports whether the process was still waiting.
func (l listener) refuse(n *notification, e unix.Errno) bool {
	return l.send(answer{id: n.id, error: -int32(e)})
}

func (l listener) send(a answer) bool {
	for {
		_, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
		runtime.KeepAlive(&a)
		if e != unix.EINTR {
			return e == 0
		}
	}
}

// Slots is the number of listeners that a recorder can have at the same time.
const Slots = 128

// shared is the memory that a recorder shares with its successor. The kernel writes each call there, so that no call is lost
// with the recorder that has received it.
type shared struct {
	seq   uint64 // the number of the last record
	count uint64 // how many recorders have begun
	slots [Slots]slot
}

// slot is the state of one listener.
type slot struct {
	now      notification // the call that is being handled; its id is 0 if there is none
	entering bool         // see [Given]
}

func mapShared(fd int) (*shared, error) {
	b, err := unix.Mmap(fd, 0, int(unsafe.Sizeof(shared{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*shared)(unsafe.Pointer(&b[0])), nil
}

// Shared is the memory of the recorders of a prison, as their keeper has it.
type Shared struct {
	*os.File
	memory *shared
}

// NewShared makes the memory for the recorders of a prison.
func NewShared() (s Shared, err error) {
	fd, err := unix.MemfdCreate("execs", unix.MFD_CLOEXEC)
	if err != nil {
		return s, err
	}
	s.File = os.NewFile(uintptr(fd), "execs")
	if err = unix.Ftruncate(fd, int64(unsafe.Sizeof(shared{}))); err == nil {
		s.memory, err = mapShared(fd)
	}
	if err != nil {
		s.Close()
	}
	return s, err
}

// Mark is the progress of a recorder with the calls of a listener. If it is the same after a while although a call waits, the recorder does
// nothing.
type Mark struct {
	call, last uint64 // id of the call that is being handled, number of the last record
	waiting    bool   // a further call waits
}

// Mark returns the progress of the current recorder with the listener in a slot. waits reports whether a call waits.
func (s Shared) Mark(number int, f *os.File) (m Mark, waits bool) {
	m = Mark{call: atomic.LoadUint64(&s.memory.slots[number].now.id), last: atomic.LoadUint64(&s.memory.seq)}
	m.waiting = listener(f.Fd()).events()&unix.POLLIN != 0
	return m, m.waiting || m.call != 0
}

// Reuse prepares a slot for another listener.
func (s Shared) Reuse(g Given) { s.memory.slots[g.Slot] = slot{entering: g.Enters} }

// Abandoned reports whether no process makes calls to a listener any more.
func Abandoned(f *os.File) bool {
	return listener(f.Fd()).events()&(unix.POLLHUP|unix.POLLNVAL|unix.POLLERR) != 0
}
