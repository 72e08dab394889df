package prison

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Group is a control group: one folder with version 2, and a folder for each controller with version 1.
type Group []string

// Count adds what only a control group counts: processes that were killed for lack of memory, and the use of disks. A number that was -1,
// and that the group does not know either, remains -1.
func (g Group) Count(u *Usage) {
	for _, name := range []string{"memory.events", "memory.oom_control"} { // of version 2, and of version 1
		if killed, ok := g.Named(name, "oom_kill"); ok {
			u.Killed = max(u.Killed, 0) + killed
		}
	}
	// The lines are such as "8:0 rbytes=1 wbytes=2", and with version 1 "8:0 Read 1".
	for line := range strings.Lines(g.content("io.stat") + g.content("blkio.throttle.io_service_bytes")) {
		fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" =\n", r) })
		for i := 1; i+1 < len(fields); i += 2 {
			n, err := strconv.ParseInt(fields[i+1], 10, 64)
			switch {
			case err != nil:
			case fields[i] == "rbytes" || fields[i] == "Read":
				u.Read = max(u.Read, 0) + n
			case fields[i] == "wbytes" || fields[i] == "Write":
				u.Written = max(u.Written, 0) + n
			}
		}
	}
}

// Number returns the number in the first of the files that exists, or -1 if there is none.
func (g Group) Number(names ...string) int64 {
	for _, name := range names {
		if n, err := strconv.ParseInt(strings.TrimSpace(g.content(name)), 10, 64); err == nil {
			return n
		}
	}
	return -1
}

// Named returns the number that follows a name in a file of the group.
func (g Group) Named(file, name string) (n int64, found bool) {
	for line := range strings.Lines(g.content(file)) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), name+" "); is {
			n, err := strconv.ParseInt(value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// content returns the content of a file of the group. It is empty if there is none.
func (g Group) content(name string) string {
	for _, dir := range g {
		if content, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return string(content)
		}
	}
	return ""
}
