package containers

import (
	"encoding/binary"
	"runtime"

	"github.com/git-airlock/git-airlock/prison/calls"
)

const (
	// entrancePath is the path of the entrance inside.
	entrancePath = "/" + entranceName
	entranceName = "home/.enter"

	loadAddress = 0x400000
	headSize    = 64 + 56 // of an ELF file with one segment

	amd64Machine = 62  // EM_X86_64
	arm64Machine = 183 // EM_AARCH64
)

// The instructions of the entrance:
//
//	result = seccomp(SECCOMP_SET_MODE_FILTER, flags, filter)
//	if result >= 0: execve(argv[1], argv+1, environment)
//	exit_group(126)
//
// The third instruction gets the flags. The fourth has the address of the filter, struct sock_fprog, which follows the instructions.
var amd64Code = []byte{
	0xb8, 0x3d, 0x01, 0x00, 0x00, // mov eax, 317
	0xbf, 0x01, 0x00, 0x00, 0x00, // mov edi, 1
	0xbe, 0x00, 0x00, 0x00, 0x00, // mov esi, flags
	0x48, 0x8d, 0x15, 0x2a, 0x00, 0x00, 0x00, // lea rdx, [filter]
	0x0f, 0x05, // syscall
	0x85, 0xc0, // test eax, eax
	0x78, 0x18, // js fail
	0x48, 0x8b, 0x0c, 0x24, // mov rcx, [rsp]
	0x48, 0x8d, 0x74, 0x24, 0x10, // lea rsi, [rsp+16]
	0x48, 0x8b, 0x3e, // mov rdi, [rsi]
	0x48, 0x8d, 0x54, 0xcc, 0x10, // lea rdx, [rsp+8*rcx+16]
	0xb8, 0x3b, 0x00, 0x00, 0x00, // mov eax, 59
	0x0f, 0x05, // syscall
	0xbf, 0x7e, 0x00, 0x00, 0x00, // fail: mov edi, 126
	0xb8, 0xe7, 0x00, 0x00, 0x00, // mov eax, 231
	0x0f, 0x05, // syscall
}

var arm64Code = []uint32{
	0xd28022a8, // mov x8, 277
	0xd2800020, // mov x0, 1
	0xd2800001, // mov x1, flags
	0x100001a2, // adr x2, filter
	0xd4000001, // svc 0
	0xb7f80100, // tbnz x0, 63, fail
	0xf94003e9, // ldr x9, [sp]
	0x910043e1, // add x1, sp, 16
	0xf9400020, // ldr x0, [x1]
	0x910043e2, // add x2, sp, 16
	0x8b090c42, // add x2, x2, x9, lsl 3
	0xd2801ba8, // mov x8, 221
	0xd4000001, // svc 0
	0xd2800fc0, // fail: mov x0, 126
	0xd2800bc8, // mov x8, 94
	0xd4000001, // svc 0
}

// entrance returns the entrance as an ELF file, or nil for a processor without one.
func entrance(architecture string, filter []byte, flags uint32) []byte {
	const flagsAmd64, flagsArm64 = 11, 2
	le := binary.LittleEndian
	switch architecture {
	case "amd64":
		code := append([]byte{}, amd64Code...)
		le.PutUint32(code[flagsAmd64:], flags)
		return program(amd64Machine, code, filter)
	case "arm64":
		var code []byte
		for i, instruction := range arm64Code {
			if i == flagsArm64 {
				instruction |= flags << 5
			}
			code = le.AppendUint32(code, instruction)
		}
		return program(arm64Machine, code, filter)
	}
	return nil
}

// program returns an ELF file of the code, the struct sock_fprog of the filter, and the filter.
func program(machine uint16, code, filter []byte) []byte {
	const fprog, instruction = 16, 8 // sizes
	le := binary.LittleEndian
	all := le.AppendUint64(code, uint64(len(filter)/instruction))
	all = le.AppendUint64(all, loadAddress+headSize+uint64(len(code))+fprog)
	return calls.ELF(machine, loadAddress, 0, append(all, filter...))
}

// Enter returns the command line that executes a command of a recorded container through the entrance.
func Enter(argv []string) []string { return append([]string{entrancePath}, argv...) }

// hasEntrance reports whether there is an entrance for this processor.
func hasEntrance() bool { return entrance(runtime.GOARCH, nil, 0) != nil }
