package native

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// sparing is said to the runtime of a process that waits for days: memory counts there, and speed does not. The package
// runtime/debug could say it later, but would come later, too: see [conn].
const sparing = "GOGC=20"

// roleEnv is for those that have nothing to do at once with something else: said later, the runtime would have made room
// for every processor of the machine.
var roleEnv = []string{sparing, "GOMAXPROCS=1"}

// restAfter is how long after its last request a process rests.
const restAfter = 2 * time.Second

// rest gives back what was needed to set up, or to answer: heap, and the pages of the program's file, of which each
// fault maps the fifteen around it as well. They are in the page cache when they are needed again.
func rest() {
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
		case !bytes.HasSuffix(name, []byte(":")): // a new mapping: addresses, mode, ..., name
			ours = bytes.HasPrefix(value, []byte("r-")) && bytes.IndexByte(value, '/') >= 0
			if ours {
				_, err := fmt.Sscanf(string(name), "%x-%x", &from, &to)
				ours = err == nil
			}
		case ours && string(name) == "Anonymous:" && string(bytes.TrimSpace(value)) == "0 kB":
			// What a linker has written into (relocations) is in no file, and counts as anonymous.
			unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED) //nolint:errcheck // it is as well without
		}
	}
}
