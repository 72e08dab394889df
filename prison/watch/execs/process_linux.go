package execs

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// image identifies what a process executes.
type image struct {
	addresses
	parent             int  // outside
	forked             bool // the process has executed nothing since it was made
	random             bool // the kernel has chosen the addresses at random
	ended              bool // a zombie
	status             int  // the wait status of a zombie
	unreadable, failed bool // the kernel hides the addresses; the file of the process cannot be read
}

// addresses are those that the kernel notes when it loads a program. Only prctl(PR_SET_MM) changes them later, which no prison allows. The
// stack and the heap begin at random addresses.
type addresses struct {
	codeFrom, codeTo uint64
	dataFrom, dataTo uint64
	heap, stack      uint64 // where they began
	argFrom, argTo   uint64 // the kernel's copy of the arguments
	environFrom      uint64 // the kernel's copy of the environment
	environTo        uint64 // its end, where the kernel's copy of the path begins
}

// same reports whether a process seems to execute the same program as before.
func (m image) same(before image) bool {
	if before.forked {
		return m.forked
	}
	return !m.unreadable && m.addresses == before.addresses
}

// sure reports whether a process that seems to execute the same program as before does so. Without random addresses, a program that a process
// executes again has the same ones.
func (m image) sure(before image) bool { return before.forked || m.random }

// complete reports whether the kernel has noted the addresses of a program that it loads. It notes those of the code and the data last, and
// codeFrom is never zero then, also for a program without code of its own.
func (m image) complete() bool { return m.codeFrom != 0 && m.argFrom != 0 && m.environTo != 0 }

// forkedOnly is PF_FORKNOEXEC of the kernel: a process has the flag from its beginning until it executes a program.
const forkedOnly = 0x40

// randomized is PF_RANDOMIZE of the kernel: it has chosen the addresses of the program at random.
const randomized = 0x400000

// procfs reads files of /proc without allocating, and without telling Go's scheduler, which would cost more than the system calls. It
// belongs to one goroutine.
type procfs struct {
	name   [64]byte
	buffer [2*block + firstPointers*firstWord]byte
}

// path returns the path of a file in /proc with a zero byte at its end, valid until the next call.
func (p *procfs) path(before string, number int, after string) *byte {
	b := strconv.AppendInt(append(p.name[:0], before...), int64(number), 10)
	_ = append(append(b, after...), 0)
	return &p.name[0]
}

// read returns the beginning of the file with the path before, number and after, below /proc. It is valid until the next call.
func (p *procfs) read(before string, number int, after string) []byte {
	fd, _, e := unix.RawSyscall6(unix.SYS_OPENAT, procFolder(), uintptr(unsafe.Pointer(p.path(before, number, after))), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
	if e != 0 {
		return nil
	}
	n, _, e := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&p.buffer[0])), uintptr(len(p.buffer)))
	unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0) //nolint:errcheck // it was only read
	if e != 0 {
		return nil
	}
	return p.buffer[:n]
}

// procFolder returns a descriptor of /proc, from which paths are shorter for the kernel.
var procFolder = sync.OnceValue(func() uintptr {
	fd, _ := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return uintptr(fd) // without it, nothing can be read
})

// link returns the target of a link, or an empty string.
func (p *procfs) link(before string, number int, after string) string {
	n, _, e := unix.RawSyscall6(unix.SYS_READLINKAT, procFolder(), uintptr(unsafe.Pointer(p.path(before, number, after))),
		uintptr(unsafe.Pointer(&p.buffer[0])), uintptr(len(p.buffer)), 0, 0)
	if e != 0 {
		return ""
	}
	return string(p.buffer[:n])
}

// image reads which program a process executes.
func (p *procfs) image(pid int) (m image) {
	line := p.read("", pid, "/stat")
	at := bytes.LastIndexByte(line, ')') // the name of the program before it can contain anything
	if at < 0 {
		return image{failed: true}
	}
	var field [52 + 1]uint64 // with the numbers of proc_pid_stat(5)
	n := 2                   // the name
	for _, c := range line[at+1:] {
		switch {
		case c == ' ':
			n++
		case n == 3:
			m.ended = c == 'Z' || c == 'X'
		case n < len(field) && c >= '0' && c <= '9':
			field[n] = field[n]*10 + uint64(c-'0')
		}
	}
	m.parent, m.status = int(field[4]), int(field[52])
	m.forked, m.random = field[9]&forkedOnly != 0, field[9]&randomized != 0
	m.addresses = addresses{
		codeFrom: field[26], codeTo: field[27], dataFrom: field[45], dataTo: field[46], heap: field[47], stack: field[28],
		argFrom: field[48], argTo: field[49], environFrom: field[50], environTo: field[51],
	}
	m.unreadable = m.stack <= 1
	return m
}

// callOf returns the number of the system call in which a thread waits, or a negative number if it waits elsewhere. A thread that runs may be
// in any call, so that the result is execve, as for one in the middle of an execve, of which the kernel may not tell.
func (p *procfs) callOf(pid, thread int) (number int, exists bool) {
	line := p.read(strconv.Itoa(pid)+"/task/", thread, "/syscall")
	word, _, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	if number, err := strconv.Atoi(word); err == nil {
		return number, true
	}
	return unix.SYS_EXECVE, word != "" || len(p.read(strconv.Itoa(pid)+"/task/", thread, "/stat")) > 0
}

// ids are the numbers of a process.
type ids struct {
	group, parent int // outside
	inside        int
	outside       bool // the process is in the pid namespace of the recorder
}

// ids reads the numbers of a process. They are zero for a process that does not exist.
func (p *procfs) ids(pid int) (n ids) {
	for line := range bytes.Lines(p.read("", pid, "/status")) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		fields := strings.Fields(string(value))
		if len(fields) == 0 {
			continue
		}
		number, _ := strconv.Atoi(fields[len(fields)-1])
		switch string(name) {
		case "Tgid":
			n.group = number
		case "PPid":
			n.parent = number
		case "NSpid":
			n.inside, n.outside = number, len(fields) == 1
			return n // the fields come in this order
		}
	}
	return n
}

// inside returns the number inside of the process of a pidfd. It takes half the time of ids.
func (p *procfs) inside(pidfd int) int {
	for line := range bytes.Lines(p.read("self/fdinfo/", pidfd, "")) {
		if value, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
			fields := strings.Fields(string(value)) // one for each namespace; negative without a process
			if len(fields) == 0 {
				return 0
			}
			number, _ := strconv.Atoi(fields[len(fields)-1])
			return max(number, 0)
		}
	}
	return 0
}
