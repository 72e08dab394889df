package wire

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mapped returns how many kB of the files that this process has mapped are in memory. Pages of a file on a tmpfs, where `go test` may put
// the program, count as shared memory (proc(5)).
func mapped(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, field := range []string{"RssFile:", "RssShmem:"} {
		_, rest, _ := strings.Cut(string(status), field)
		n, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// TestRestReleasesMemory checks that a process that has read its whole program keeps little of it mapped after Rest, and still works.
func TestRestReleasesMemory(t *testing.T) {
	readProgram(t)
	before := mapped(t)
	Rest()
	after := mapped(t)
	if after > before*2/3 {
		t.Errorf("%d kB of the program are mapped, %d before", after, before)
	}
}

// readProgram makes the kernel map all pages of the program (madvise(2), since Linux 5.14).
func readProgram(t *testing.T) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if fields[len(fields)-1] != program || fields[1][0] != 'r' {
			continue
		}
		var from, to uintptr
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_POPULATE_READ); errno != 0 {
			t.Fatal("populate", fields[0], errno)
		}
	}
}
