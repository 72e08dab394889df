package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// SparingEnv configures the runtime of a process that waits for days, and should save memory rather than time.
// Package runtime/debug could do so as well, but importing it would delay a role's start: see [Conn].
const SparingEnv = "GOGC=20"

// RoleEnv is the environment of roles that never do two things at once. It is set in the environment because the
// runtime reserves memory for every processor of the machine when it starts.
var RoleEnv = []string{SparingEnv, "GOMAXPROCS=1"}

// RestAfter is how long after its last request a process calls [Rest].
const RestAfter = 2 * time.Second

// Rest returns memory that was needed for setting up or answering: heap, and the pages of the program's file. Each
// page fault also maps the fifteen pages around it. When the pages are needed again they are still in the page
// cache.
func Rest() {
	runtime.GC()
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	var from, to uintptr
	ours := false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Bytes()
		name, value, _ := bytes.Cut(line, []byte(" "))
		switch {
		case !bytes.HasSuffix(name, []byte(":")): // the first line of a mapping: addresses, mode, ..., name
			ours = bytes.HasPrefix(value, []byte("r-")) && bytes.IndexByte(value, '/') >= 0
			if ours {
				_, err := fmt.Sscanf(string(name), "%x-%x", &from, &to)
				ours = err == nil
			}
		case ours && string(name) == "Anonymous:" && string(bytes.TrimSpace(value)) == "0 kB":
			// Pages that a linker has written to (relocations) are in no file, and count as anonymous.
			unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED) //nolint:errcheck // resting is optional
		}
	}
}
