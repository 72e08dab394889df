package gitops

import "golang.org/x/sys/unix"

// limitMemory bounds what a process may allocate: its heap and its private mappings, getrlimit(2). Packs that are mapped
// for reading do not count. A process that has ended has nothing to be bounded any more.
func limitMemory(pid int, bytes int64) {
	limit := unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil)
}
