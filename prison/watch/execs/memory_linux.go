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

// parts splits a range of addresses at the ends of pages, and appends the parts to a list. The kernel reads a part as a whole or not at
// all.
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

// text reads a string that ends with a zero byte. whole is false if it has more than most bytes, or cannot be read.
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

// list reads the strings of a list of pointers that ends with a zero pointer, at most most bytes of them.
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

const (
	// block is how many bytes of memory arguments reads at first around a pointer. It is at most a page.
	block = 4096
	// firstPointers bounds how many words are read together, and firstWord how many bytes of each. Most calls need no more.
	firstPointers = 64
	firstWord     = 128
)

// nearby is the memory around the path and the list of a call, where the words often are, too.
type nearby [2]struct {
	at    uint64
	bytes []byte
}

// nearby reads the memory around two addresses into a buffer of two blocks.
func (m memory) nearby(b []byte, path, list uint64) (n nearby) {
	n[0].at, n[1].at = path&^(block-1), list&^(block-1)
	got := m.gather(b, []unix.RemoteIovec{{Base: uintptr(n[0].at), Len: block}, {Base: uintptr(n[1].at), Len: block}})
	n[0].bytes, n[1].bytes = b[:min(got, block)], b[min(got, block):got]
	return n
}

// from returns the memory from an address on.
func (n nearby) from(at uint64) []byte {
	for _, part := range n {
		if at >= part.at && at-part.at < uint64(len(part.bytes)) {
			return part.bytes[at-part.at:]
		}
	}
	return nil
}

// text returns the string at an address. ok is false if its end is not there.
func (n nearby) text(at uint64) (text string, ok bool) {
	b := n.from(at)
	zero := bytes.IndexByte(b, 0)
	if zero < 0 {
		return "", false
	}
	return string(b[:zero]), true
}

// arguments reads the path and the list of a call, often with one system call. It reads the words that are not nearby with another call,
// and longer words and lists with text and list.
func (m memory) arguments(b []byte, path, argv uint64) (name string, whole bool, list []string, all bool) {
	near := m.nearby(b[:2*block], path, argv)
	if name, whole = near.text(path); !whole {
		name, whole = m.text(path, maxPath)
	}
	var pointers [firstPointers]uint64
	for i, from := 0, near.from(argv); i < len(pointers) && len(from) >= 8; i, from = i+1, from[8:] {
		if pointers[i] = binary.NativeEndian.Uint64(from); pointers[i] == 0 {
			list, all = m.words(b[2*block:], near, pointers[:i], maxArguments)
			return name, whole, list, all
		}
	}
	list, all = m.list(argv, maxArguments)
	return name, whole, list, all
}

// words reads strings as list does, at pointers that are known.
func (m memory) words(b []byte, near nearby, pointers []uint64, most int) (list []string, whole bool) {
	var space [firstPointers]unix.RemoteIovec
	from, size := space[:0], 0
	list = make([]string, len(pointers))
	missing := make([]bool, len(pointers))
	for i, p := range pointers {
		text, ok := near.text(p)
		if list[i] = text; ok {
			continue
		}
		missing[i] = true
		n := int(min(firstWord, pageSize-p%pageSize))
		from, size = append(from, unix.RemoteIovec{Base: uintptr(p), Len: n}), size+n
	}
	rest := b[:m.gather(b[:size], from)]
	for i, p := range pointers {
		whole := true
		if missing[i] {
			part := rest[:min(from[0].Len, len(rest))]
			from, rest = from[1:], rest[len(part):]
			if zero := bytes.IndexByte(part, 0); zero >= 0 {
				list[i] = string(part[:zero])
			} else {
				list[i], whole = m.text(p, most)
			}
		}
		if len(list[i]) > most {
			list[i], whole = list[i][:most], false
		}
		if most -= len(list[i]) + 1; !whole || most <= 0 {
			return list[:i+1], false
		}
	}
	return list, true
}

// maxPointers bounds the arguments that divided divides.
const maxPointers = 1024

// pointers reads the list of arguments that the kernel puts on the stack of a new program: their number, and a pointer to each. Without it,
// the result is empty.
func (m memory) pointers(stack uint64) (list []uint64) {
	const pointer = 8
	var number [pointer]byte
	if m.read(number[:], stack) < pointer {
		return nil
	}
	n := binary.NativeEndian.Uint64(number[:])
	if n > maxPointers {
		return nil
	}
	b := make([]byte, n*pointer)
	if m.read(b, stack+pointer) < len(b) {
		return nil
	}
	for ; len(b) > 0; b = b[pointer:] {
		list = append(list, binary.NativeEndian.Uint64(b))
	}
	return list
}

// given reads what the kernel gave to the program of a process: the strings lie one after the other, the arguments, the environment and the
// path. more is the expected length of the path in bytes.
func (m memory) given(i image, more int) (g given, ok bool) {
	size := min(i.argTo-i.argFrom, maxArguments)
	if i.argTo < i.argFrom {
		return g, false
	}
	b := make([]byte, size+uint64(more)+1)
	var space [16]unix.RemoteIovec
	got := m.gather(b, parts(parts(space[:0], i.argFrom, size), i.environTo, uint64(more)+1))
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
		g.path, ok = m.text(i.environTo, more)
	}
	return g, ok
}
