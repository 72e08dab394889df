package selftest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// slack is what a backend may need of the limit of processes for itself.
const slack = 64

// tryProcessLimit starts more processes than there may be, which end as soon as one could not be started. A shell
// that cannot fork says so and ends, or tries for a while: both count as long as not all were there.
func tryProcessLimit(ctx context.Context, s Subject) (seen, broken string, err error) {
	limit := s.Spec.Limits.OrDefault().PIDs
	script := fmt.Sprintf(`trap 'kill $p 2>/dev/null' EXIT
		i=0; p=; while [ $i -lt %d ]; do sleep 20 & p="$p $!"; i=$((i+1)); done; echo all`, limit+slack)
	out, err := s.read(ctx, "("+script+") 2>/dev/null; true")
	if err != nil {
		return "", "", err
	}
	if strings.TrimSpace(out) == "all" {
		return "", fmt.Sprintf("%d processes ran at once", limit+slack), nil
	}
	return fmt.Sprintf("fewer than %d could run", limit+slack), "", nil
}

// tryMemoryLimit looks, as using so much memory would hurt, at the limits that hold for a process inside.
func tryMemoryLimit(ctx context.Context, s Subject) (seen, broken string, err error) {
	want := s.Spec.Limits.OrDefault().Memory
	group, known := memoryOfGroup(s.Spec.UID)
	if known && group <= want {
		return fmt.Sprintf("the control group has %d MiB", group>>20), "", nil
	}
	out, err := s.read(ctx, "ulimit -d")
	if err != nil {
		return "", "", err
	}
	// In units of 1024 bytes; a backend may grant a small prison what its first process needs.
	data, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil || data<<10 > max(want, 1<<28) {
		return "", fmt.Sprintf("no control group bounds it, and ulimit -d says %s", strings.TrimSpace(out)), nil
	}
	return fmt.Sprintf("each process has %d MiB", data>>10), "", nil
}
