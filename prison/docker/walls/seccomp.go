package walls

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// Argument values in the rules. The numbers are the same on every architecture that Linux runs containers on,
// except that the flags of open(2) differ on a few rare ones.
const (
	setIDBits  = 0o6000
	createBits = 0o100 | 0x400000 // O_CREAT, and __O_TMPFILE, which O_TMPFILE contains
	low32      = 0xffffffff

	// Requests of ioctl(2) that a native prison refuses, too.
	tiocsti   = 0x5412
	tioclinux = 0x541c
	tioccons  = 0x541d
	tiocsetd  = 0x5423

	setMemory = 35 // PR_SET_MM of prctl(2)

	// Flags for huge pages, which no memory limit counts.
	mapHugeTLB = 0x40000
	mfdHugeTLB = 0x4
	shmHugeTLB = 0o4000

	enosys = 38

	limitCore  = 4  // RLIMIT_CORE
	limitsMost = 15 // the last limit that exists
)

const (
	allow    = "SCMP_ACT_ALLOW"
	refuse   = "SCMP_ACT_ERRNO"
	maskedEq = "SCMP_CMP_MASKED_EQ"
	equal    = "SCMP_CMP_EQ"
	notEqual = "SCMP_CMP_NE"
)

// families are the address families of sockets that a program inside may open: local sockets, IPv4, IPv6, and
// netlink, through which programs read their addresses.
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

// restricted are the calls that Profile allows only with certain arguments, or not at all.
var restricted = []string{
	"chmod", "fchmod", "fchmodat", "fchmodat2", "creat", "mknod", "mknodat", "open", "openat", "openat2",
	"socket", "socketcall", "ioctl", "name_to_handle_at", "setrlimit", "prlimit64",
	"mmap", "mmap2", "memfd_create", "shmget", "prctl",
}

// Profile returns the system call filter. It is Docker's own filter, but refuses calls of foreign architectures, files with set-id bits
// (which would be on the host's disk, too), rare kinds of sockets, some requests to terminals, huge pages, core dumps, and changes of the
// addresses by which the recorder of programs recognizes a new program. All rules list the allowed values: two rules for one call must have
// the same action, and a rule cannot exclude a value by comparing only the low half of an argument.
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
		r.Names = slices.DeleteFunc(r.Names, func(name string) bool { return slices.Contains(restricted, name) })
	}
	p.Syscalls = slices.DeleteFunc(p.Syscalls, func(r ruleJSON) bool { return len(r.Names) == 0 })
	p.Syscalls = append(p.Syscalls, setIDRules()...)
	p.Syscalls = append(p.Syscalls, socketRules()...)
	p.Syscalls = append(p.Syscalls, allBut("ioctl", 1, tiocsti, tioclinux, tioccons, tiocsetd)...)
	p.Syscalls = append(p.Syscalls, allBut("prctl", 0, setMemory)...)
	p.Syscalls = append(p.Syscalls, hugeRules()...)
	p.Syscalls = append(p.Syscalls, coreRules()...)
	out, err := json.Marshal(p)
	return string(out), err
})

// bitsAre allows calls if the masked bits of an argument have a value.
func bitsAre(index uint, mask, value uint64, names ...string) ruleJSON {
	return ruleJSON{Names: names, Action: allow, Args: []argJSON{{index, mask, value, maskedEq}}}
}

func setIDRules() []ruleJSON {
	errno := uint(enosys)
	return []ruleJSON{
		bitsAre(1, setIDBits, 0, "chmod", "fchmod", "creat", "mknod"),
		bitsAre(2, setIDBits, 0, "fchmodat", "fchmodat2", "mknodat"),
		// Without a flag that creates, the mode is not an argument, and its register may contain anything.
		bitsAre(1, createBits, 0, "open"), bitsAre(2, setIDBits, 0, "open"),
		bitsAre(2, createBits, 0, "openat"), bitsAre(3, setIDBits, 0, "openat"),
		// A filter cannot read arguments behind a pointer. Callers use the older call when this one does not exist.
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

// hugeRules allow memory in pages of the usual size, and not in huge pages.
func hugeRules() []ruleJSON {
	return []ruleJSON{
		bitsAre(3, mapHugeTLB, 0, "mmap", "mmap2"),
		bitsAre(1, mfdHugeTLB, 0, "memfd_create"),
		bitsAre(2, shmHugeTLB, 0, "shmget"),
	}
}

// allBut allows a call unless an argument has one of the refused values, which differ only in their last six bits. The kernel reads only the
// low half of the argument, so comparing the whole argument would allow 1<<32|TIOCSTI.
func allBut(name string, index uint, refused ...uint64) []ruleJSON {
	var rules []ruleJSON
	const last = 0x3f
	for bit := uint64(last + 1); bit <= low32; bit <<= 1 {
		rules = append(rules, bitsAre(index, bit, ^refused[0]&bit, name))
	}
	for low := uint64(0); low <= last; low++ {
		if value := refused[0]&^uint64(last) | low; !slices.Contains(refused, value) {
			rules = append(rules, bitsAre(index, low32, value, name))
		}
	}
	return rules
}

// coreRules keep the core dump limit unchanged. Programs lower it as a precaution, and the call reports success.
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
