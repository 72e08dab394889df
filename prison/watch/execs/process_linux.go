package execs

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// image identifies what a process executes. The kernel chooses the addresses at random for each program.
type image struct {
	stack              uint64 // the address at which the stack began
	argFrom, argTo     uint64 // the kernel's copy of the arguments
	environFrom, enTo  uint64
	parent             int // outside
	threads            int
	started            uint64
	ended              bool // a zombie
	status             int  // the wait status of a zombie
	unreadable, failed bool // the kernel hides the addresses; the process does not exist
}

// same reports whether a process executes the same as before.
func (m image) same(other image) bool {
	return m.stack == other.stack && m.argFrom == other.argFrom && m.enTo == other.enTo
}

// complete reports whether the kernel has finished loading a program.
func (m image) complete() bool { return m.stack != 0 && m.argFrom != 0 && m.enTo != 0 }

// Numbers of fields in /proc/PID/stat, counted from the state, which is field 3 of proc_pid_stat(5).
const (
	statState   = 0
	statParent  = 4 - 3
	statThreads = 20 - 3
	statStart   = 22 - 3
	statStack   = 28 - 3
	statArgFrom = 48 - 3
	statArgTo   = 49 - 3
	statEnvFrom = 50 - 3
	statEnvTo   = 51 - 3
	statExit    = 52 - 3
)

// procfs reads files of /proc without allocating. It belongs to one goroutine.
type procfs struct{ buffer [8192]byte }

// read returns the beginning of a file, valid until the next call.
func (p *procfs) read(pid int, name string) []byte {
	return p.readFile("/proc/" + strconv.Itoa(pid) + "/" + name)
}

func (p *procfs) readFile(path string) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, p.buffer[:])
	if err != nil {
		return nil
	}
	return p.buffer[:n]
}

// link returns the target of a link, or an empty string.
func (p *procfs) link(pid int, name string) string {
	n, err := unix.Readlink("/proc/"+strconv.Itoa(pid)+"/"+name, p.buffer[:])
	if err != nil {
		return ""
	}
	return string(p.buffer[:n])
}

// image reads what a process executes.
func (p *procfs) image(pid int) (m image) {
	line := p.read(pid, "stat")
	at := bytes.LastIndexByte(line, ')') // the name of the program before it can contain anything
	if at < 0 {
		return image{failed: true}
	}
	var field [statExit + 1]uint64
	n := -1
	for _, c := range line[at+1:] {
		switch {
		case c == ' ':
			n++
		case n == statState:
			m.ended = c == 'Z' || c == 'X'
		case n >= 0 && n <= statExit && c >= '0' && c <= '9':
			field[n] = field[n]*10 + uint64(c-'0')
		}
	}
	m.parent, m.threads, m.started = int(field[statParent]), int(field[statThreads]), field[statStart]
	m.stack, m.argFrom, m.argTo = field[statStack], field[statArgFrom], field[statArgTo]
	m.environFrom, m.enTo, m.status = field[statEnvFrom], field[statEnvTo], int(field[statExit])
	m.unreadable = m.stack <= 1
	return m
}

// ids are numbers of a process.
type ids struct {
	group, parent int // outside
	inside        int
	outside       bool // the process is in the pid namespace of the recorder
}

// ids reads the numbers of a process. They are zero for a process that does not exist.
func (p *procfs) ids(pid int) (n ids) {
	for line := range bytes.Lines(p.read(pid, "status")) {
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
	for line := range bytes.Lines(p.readFile("/proc/self/fdinfo/" + strconv.Itoa(pidfd))) {
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

// memory reads the memory of a process.
type memory struct{ pid int }

var pageSize = uint64(os.Getpagesize())

// read reads up to len(b) bytes, and returns how many could be read. The kernel counts whole parts only, so that the parts end
// with the pages.
func (m memory) read(b []byte, at uint64) int {
	if len(b) == 0 || at == 0 {
		return 0
	}
	var remote []unix.RemoteIovec
	for from, left := at, uint64(len(b)); left > 0 && len(remote) < 64; {
		n := min(left, pageSize-from%pageSize)
		remote = append(remote, unix.RemoteIovec{Base: uintptr(from), Len: int(n)})
		from, left = from+n, left-n
	}
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	n, err := unix.ProcessVMReadv(m.pid, local, remote, 0)
	if err != nil {
		return 0
	}
	return n
}

// text reads a string that ends with a zero byte. whole is false for one that is longer, or that cannot be read.
func (m memory) text(at uint64, most int) (text string, whole bool) {
	var b []byte
	for n := 256; ; n *= 8 {
		b = make([]byte, min(n, most+1))
		got := m.read(b, at)
		if i := bytes.IndexByte(b[:got], 0); i >= 0 {
			return string(b[:i]), true
		}
		if got < len(b) || len(b) > most {
			return string(b[:min(got, most)]), false
		}
	}
}

// list reads the strings of a list of pointers that ends with a zero pointer.
func (m memory) list(at uint64, most int) (list []string, whole bool) {
	const pointer, chunk = 8, 64
	if at == 0 {
		return nil, true
	}
	for b := make([]byte, pointer*chunk); ; at += pointer * chunk {
		got := m.read(b, at)
		for i := 0; i+pointer <= got; i += pointer {
			p := binary.NativeEndian.Uint64(b[i:])
			if p == 0 {
				return list, true
			}
			text, whole := m.text(p, most)
			if list, most = append(list, text), most-len(text)-1; !whole || most <= 0 {
				return list, false
			}
		}
		if got < len(b) {
			return list, false
		}
	}
}

// given reads what the kernel gave to the program of a process: the strings lie one after the other, the arguments, the
// environment and the path. more is the length of the path that is expected.
func (m memory) given(i image, more int) (g given, ok bool) {
	size := min(i.argTo-i.argFrom, maxArguments)
	if i.argTo < i.argFrom {
		return g, false
	}
	b := make([]byte, size)
	if m.read(b, i.argFrom) < len(b) {
		return g, false
	}
	g.cut = size < i.argTo-i.argFrom
	if size > 0 {
		g.argv = strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	}
	g.path, ok = m.text(i.enTo, more)
	return g, ok
}
