package calls

import "encoding/binary"

// ELF returns a program for a processor: code, which is loaded at base behind the head of the file, and a writable page, unless that is 0.
// The head has 64 bytes, and 56 for each of the two.
func ELF(machine uint16, base, page uint64, code []byte) []byte {
	le := binary.LittleEndian
	segments := uint16(1)
	if page != 0 {
		segments = 2
	}
	head := 64 + 56*uint64(segments)
	f := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	f = le.AppendUint16(f, 2) // ET_EXEC
	f = le.AppendUint16(f, machine)
	f = le.AppendUint32(f, 1)
	f = le.AppendUint64(f, base+head) // entry
	f = le.AppendUint64(f, 64)        // program headers
	f = le.AppendUint64(f, 0)
	f = le.AppendUint32(f, 0)
	for _, n := range []uint16{64, 56, segments, 0, 0, 0} {
		f = le.AppendUint16(f, n)
	}
	segment := func(flags uint32, address, inFile, inMemory uint64) {
		f = le.AppendUint32(f, 1) // PT_LOAD
		f = le.AppendUint32(f, flags)
		for _, n := range []uint64{0, address, address, inFile, inMemory, 0x10000} {
			f = le.AppendUint64(f, n)
		}
	}
	size := head + uint64(len(code))
	segment(5, base, size, size) // read, execute
	if page != 0 {
		segment(6, page, 0, 0x1000) // read, write
	}
	return append(f, code...)
}
