package native

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// mapped is how much of its file a process has mapped, in kB.
func mapped(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	fields := strings.Fields(rest)
	n, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRestGivesBack looks at a process that has read all of its program: what waits for days keeps little of it, and works.
func TestRestGivesBack(t *testing.T) {
	if _, err := os.ReadFile("/proc/self/exe"); err != nil {
		t.Fatal(err)
	}
	before := mapped(t)
	rest()
	after := mapped(t)
	if after > before*2/3 {
		t.Errorf("%d kB of the program are mapped, %d before", after, before)
	}
}
