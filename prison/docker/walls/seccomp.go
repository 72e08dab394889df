package walls

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// What the rules look for in arguments; the numbers are those of every machine that Linux runs
// containers on, but see open(2) on the flags of a few rare ones.
const (
	setIDBits  = 0o6000
	createBits = 0o100 | 0x400000 // O_CREAT, and __O_TMPFILE, which O_TMPFILE contains
	low32      = 0xffffffff

	// Requests of ioctl(2) that a native prison refuses, too.
	tiocsti   = 0x5412
	tioclinux = 0x541c
	tioccons  = 0x541d
	tiocsetd  = 0x5423

	// Flags for huge pages, of which no limit of memory counts any.
	mapHugeTLB = 0x40000
	mfdHugeTLB = 0x4
	shmHugeTLB = 0o4000

	enosys = 38

	limitCore  = 4  // RLIMIT_CORE
	limitsMost = 15 // the last one that there is
)

const (
	allow    = "SCMP_ACT_ALLOW"
	refuse   = "SCMP_ACT_ERRNO"
	maskedEq = "SCMP_CMP_MASKED_EQ"
	equal    = "SCMP_CMP_EQ"
	notEqual = "SCMP_CMP_NE"
)

// families are the address families that a program inside may open sockets of: local ones, the internet's two,
// and the kernel's own, which tells programs their addresses.
var families = []uint64{1, 2, 10, 16}

type (
	profileJSON struct {
		DefaultAction string     `json:"defaultAction"`
		DefaultErrno  *uint      `json:"defaultErrnoRet,omitempty"`
		ArchMap       []archJSON `json:"archMap"`
		Syscalls      []ruleJSON `json:"syscalls"`
	}
	archJSON struct {
		Architecture string   `json:"architecture"`
		Sub          []string `json:"subArchitectures"`
	}
	ruleJSON struct {
		Names    []string        `json:"names"`
		Action   string          `json:"action"`
		Errno    *uint           `json:"errnoRet,omitempty"`
		Args     []argJSON       `json:"args,omitempty"`
		Includes json.RawMessage `json:"includes,omitempty"`
		Excludes json.RawMessage `json:"excludes,omitempty"`
	}
	argJSON struct {
		Index    uint   `json:"index"`
		Value    uint64 `json:"value"`
		ValueTwo uint64 `json:"valueTwo"`
		Op       string `json:"op"`
	}
)

// looked are the calls that Profile allows by their arguments only, or not at all.
var looked = []string{
	"chmod", "fchmod", "fchmodat", "fchmodat2", "creat", "mknod", "mknodat", "open", "openat", "openat2",
	"socket", "socketcall", "ioctl", "name_to_handle_at", "setrlimit", "prlimit64",
	"mmap", "mmap2", "memfd_create", "shmget",
}

// Profile returns the filter of system calls: Docker's own, without foreign machines' calls, files with set-id bits (which would
// be on the host's disk, too), rare kinds of sockets, some requests to terminals, huge pages, and core dumps. No
// two rules for one call may differ in their action, and what an argument must not be cannot be said of its low half
// alone: so everything is said as what it may be.
var Profile = sync.OnceValues(func() (string, error) {
	encoded, err := defaultProfile()
	if err != nil {
		return "", fmt.Errorf("syscall filter: %w", err)
	}
	var p profileJSON
	if err := json.Unmarshal(encoded, &p); err != nil {
		return "", fmt.Errorf("syscall filter: %w", err)
	}
	for i := range p.ArchMap {
		p.ArchMap[i].Sub = []string{}
	}
	for i := range p.Syscalls {
		r := &p.Syscalls[i]
		r.Names = slices.DeleteFunc(r.Names, func(name string) bool { return slices.Contains(looked, name) })
	}
	p.Syscalls = slices.DeleteFunc(p.Syscalls, func(r ruleJSON) bool { return len(r.Names) == 0 })
	p.Syscalls = append(p.Syscalls, setIDRules()...)
	p.Syscalls = append(p.Syscalls, socketRules()...)
	p.Syscalls = append(p.Syscalls, ioctlRules()...)
	p.Syscalls = append(p.Syscalls, hugeRules()...)
	p.Syscalls = append(p.Syscalls, coreRules()...)
	out, err := json.Marshal(p)
	return string(out), err
})

// bitsAre allows calls in an argument of which the bits of a mask have a value.
func bitsAre(index uint, mask, value uint64, names ...string) ruleJSON {
	return ruleJSON{Names: names, Action: allow, Args: []argJSON{{index, mask, value, maskedEq}}}
}

func setIDRules() []ruleJSON {
	errno := uint(enosys)
	return []ruleJSON{
		bitsAre(1, setIDBits, 0, "chmod", "fchmod", "creat", "mknod"),
		bitsAre(2, setIDBits, 0, "fchmodat", "fchmodat2", "mknodat"),
		// Without a creating flag the mode is whatever the register holds.
		bitsAre(1, createBits, 0, "open"), bitsAre(2, setIDBits, 0, "open"),
		bitsAre(2, createBits, 0, "openat"), bitsAre(3, setIDBits, 0, "openat"),
		// What cannot be looked into does not exist: callers then use the older call.
		{Names: []string{"openat2"}, Action: refuse, Errno: &errno},
	}
}

func socketRules() []ruleJSON {
	var rules []ruleJSON
	for _, family := range families {
		rules = append(rules, bitsAre(0, low32, family, "socket"))
	}
	return rules
}

// hugeRules allow memory in pages of the usual size.
func hugeRules() []ruleJSON {
	return []ruleJSON{
		bitsAre(3, mapHugeTLB, 0, "mmap", "mmap2"),
		bitsAre(1, mfdHugeTLB, 0, "memfd_create"),
		bitsAre(2, shmHugeTLB, 0, "shmget"),
	}
}

// ioctlRules allow every request but some, which are alike in all but the last six bits. The kernel looks
// at the low half of the argument only, so comparing all of it would let 1<<32|TIOCSTI through.
func ioctlRules() []ruleJSON {
	refused := []uint64{tiocsti, tioclinux, tioccons, tiocsetd}
	var rules []ruleJSON
	const last = 0x3f
	for bit := uint64(last + 1); bit <= low32; bit <<= 1 {
		rules = append(rules, bitsAre(1, bit, ^uint64(tiocsti)&bit, "ioctl"))
	}
	for low := uint64(0); low <= last; low++ {
		if request := tiocsti&^uint64(last) | low; !slices.Contains(refused, request) {
			rules = append(rules, bitsAre(1, low32, request, "ioctl"))
		}
	}
	return rules
}

// coreRules keep the limit of core dumps where it is. Programs lower it as a precaution, and are told that they have.
func coreRules() []ruleJSON {
	var success uint
	rules := []ruleJSON{
		{Names: []string{"setrlimit"}, Action: refuse, Errno: &success, Args: []argJSON{{0, low32, limitCore, maskedEq}}},
		{Names: []string{"prlimit64"}, Action: refuse, Errno: &success, Args: []argJSON{
			{1, low32, limitCore, maskedEq}, {Index: 2, Value: 0, Op: notEqual},
		}},
		{Names: []string{"prlimit64"}, Action: allow, Args: []argJSON{
			{1, low32, limitCore, maskedEq}, {Index: 2, Value: 0, Op: equal},
		}},
	}
	for limit := uint64(0); limit <= limitsMost; limit++ {
		if limit != limitCore {
			rules = append(rules, bitsAre(0, low32, limit, "setrlimit"), bitsAre(1, low32, limit, "prlimit64"))
		}
	}
	return rules
}
