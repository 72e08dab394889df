package execs

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory reads the memory of a process.
type memory struct{ pid int }

var pageSize = uint64(os.Getpagesize())

// parts appends the parts of a range of addresses that lie in one page each. The kernel counts whole parts only.
func parts(list []unix.RemoteIovec, at, size uint64) []unix.RemoteIovec {
	for size > 0 {
		n := min(size, pageSize-at%pageSize)
		list = append(list, unix.RemoteIovec{Base: uintptr(at), Len: int(n)})
		at, size = at+n, size-n
	}
	return list
}

// gather reads ranges of addresses one after the other, and returns how many bytes could be read.
func (m memory) gather(b []byte, from []unix.RemoteIovec) int {
	if len(b) == 0 {
		return 0
	}
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	n, _, e := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(m.pid), uintptr(unsafe.Pointer(&local[0])), 1,
		uintptr(unsafe.Pointer(&from[0])), uintptr(len(from)), 0)
	runtime.KeepAlive(b)
	if e != 0 {
		return 0
	}
	return int(n)
}

// read reads up to len(b) bytes, and returns how many could be read.
func (m memory) read(b []byte, at uint64) int {
	if at == 0 {
		return 0
	}
	var space [16]unix.RemoteIovec
	return m.gather(b, parts(space[:0], at, uint64(len(b))))
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

// Sizes of what arguments reads at first. Most calls need no more.
const (
	firstPath     = 256
	firstPointers = 64 * 8
	firstWord     = 128
)

// arguments reads the path and the list of a call, with few system calls: the path and the pointers with one, and the words with
// another. What is longer is read by text and list.
func (m memory) arguments(b []byte, path, argv uint64) (name string, whole bool, list []string, all bool) {
	n, p := toPageEnd(path, firstPath), toPageEnd(argv, firstPointers)
	got := m.gather(b[:n+p], []unix.RemoteIovec{{Base: uintptr(path), Len: n}, {Base: uintptr(argv), Len: p}})
	if i := bytes.IndexByte(b[:min(n, got)], 0); i >= 0 {
		name, whole = string(b[:i]), true
	} else {
		name, whole = m.text(path, maxPath)
	}
	var pointers [firstPointers / 8]uint64
	for i := range pointers {
		if n+8*i+8 > got {
			break
		}
		if pointers[i] = binary.NativeEndian.Uint64(b[n+8*i:]); pointers[i] == 0 {
			list, all = m.words(b, pointers[:i], maxArguments)
			return name, whole, list, all
		}
	}
	list, all = m.list(argv, maxArguments)
	return name, whole, list, all
}

func toPageEnd(at uint64, most int) int { return int(min(uint64(most), pageSize-at%pageSize)) }

// words reads strings like list, with the pointers given.
func (m memory) words(b []byte, pointers []uint64, most int) (list []string, whole bool) {
	if len(pointers) == 0 {
		return nil, true
	}
	var space [firstPointers / 8]unix.RemoteIovec
	from, size := space[:0], 0
	for _, p := range pointers {
		n := toPageEnd(p, min(firstWord, len(b)/len(pointers)))
		from, size = append(from, unix.RemoteIovec{Base: uintptr(p), Len: n}), size+n
	}
	got := m.gather(b[:size], from)
	list = make([]string, 0, len(pointers))
	at := 0
	for i, p := range pointers {
		var text string
		var whole bool
		end := at + from[i].Len
		if zero := bytes.IndexByte(b[min(at, got):min(end, got)], 0); zero >= 0 && zero <= most {
			text, whole = string(b[at:at+zero]), true
		} else {
			text, whole = m.text(p, most)
		}
		at = end
		if list, most = append(list, text), most-len(text)-1; !whole || most <= 0 {
			return list, false
		}
	}
	return list, true
}

// given reads what the kernel gave to the program of a process: the strings lie one after the other, the arguments, the
// environment and the path. more is the length of the path that is expected.
func (m memory) given(i image, more int) (g given, ok bool) {
	size := min(i.argTo-i.argFrom, maxArguments)
	if i.argTo < i.argFrom {
		return g, false
	}
	b := make([]byte, size+uint64(more)+1)
	var space [16]unix.RemoteIovec
	got := m.gather(b, parts(parts(space[:0], i.argFrom, size), i.enTo, uint64(more)+1))
	if got < int(size) {
		return g, false
	}
	g.cut = size < i.argTo-i.argFrom
	if size > 0 {
		g.argv = strings.Split(strings.TrimSuffix(string(b[:size]), "\x00"), "\x00")
	}
	if end := bytes.IndexByte(b[size:got], 0); end >= 0 {
		g.path, ok = string(b[size:int(size)+end]), true
	} else {
		g.path, ok = m.text(i.enTo, more)
	}
	return g, ok
}
