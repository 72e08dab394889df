package selftest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
)

// slack is the number of processes that a backend may add to the limit for its own processes.
const slack = 64

// tryProcessLimit tries to start more processes than the limit allows. A shell that cannot fork prints an error and ends, or tries again
// for a while. The promise is kept unless all processes run at the same time. Each process reads a pipe until the shell ends, so none
// ends early even if a busy machine needs long to start them.
func tryProcessLimit(ctx context.Context, s Subject) (seen, broken string, err error) {
	limit := s.Spec.Limits.OrDefault().PIDs
	// An image can name a missing folder in TMPDIR.
	script := fmt.Sprintf(`for t in "$TMPDIR" /tmp /dev/shm "$HOME"; do d=$(TMPDIR=$t mktemp -d) && break; done
		mkfifo "$d/pipe" && exec 3<>"$d/pipe" 4<"$d/pipe" && rm -r "$d" && echo begun || exit 0
		i=0; while [ $i -lt %d ]; do { exec 3>&- >/dev/null; read -r line <&4; } & i=$((i+1)); done; echo all`, limit+slack)
	out, err := s.read(ctx, "("+script+") 2>/dev/null; true")
	if err != nil {
		return "", "", err
	}
	switch strings.Join(strings.Fields(out), " ") {
	case "begun":
		return fmt.Sprintf("fewer than %d could run", limit+slack), "", nil
	case "begun all":
		return "", fmt.Sprintf("%d processes ran at once", limit+slack), nil
	}
	return "", "", &untriedError{reason: "no pipe could be made"}
}

// tryMemoryLimit reads the limits of a process inside. Using that much memory would harm the machine.
func tryMemoryLimit(ctx context.Context, s Subject) (seen, broken string, err error) {
	want := s.Spec.Limits.OrDefault().Memory
	group, known := s.least(ctx, memoryLimit)
	if known && int64(group) <= want {
		if sockets, set := s.least(ctx, socketLimit); set && int64(sockets) > want && !s.Isolation.Lacks(prison.LooseMemoryLimit) {
			return "", "the memory of sockets is not counted", nil
		}
		return fmt.Sprintf("the control group has %d MiB", int64(group)>>20), "", nil
	}
	out, err := s.read(ctx, "ulimit -d")
	if err != nil {
		return "", "", err
	}
	// ulimit prints units of 1024 bytes. A backend may give a small prison the memory that its first process needs.
	data, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil || data<<10 > max(want, 1<<28) {
		return "", fmt.Sprintf("no control group bounds it, and ulimit -d says %s", strings.TrimSpace(out)), nil
	}
	return fmt.Sprintf("each process has %d MiB", data>>10), "", nil
}

// tryProcessorLimit reads the control group's limit. Using more processor time for a while would prove little on a busy machine.
func tryProcessorLimit(ctx context.Context, s Subject) (seen, broken string, err error) {
	want := s.Spec.Limits.OrDefault().CPUs
	cores, known := s.least(ctx, processorLimit)
	if !known || cores > want+0.01 {
		return "", fmt.Sprintf("no control group limits it to %g cores", want), nil
	}
	return fmt.Sprintf("the control group has %g cores", cores), "", nil
}

// least returns the lowest value of a limit that applies to the agent's processes. If the runtime has its own kernel, the host does not
// see the processes, and the value is the one that this kernel reports, which the agent cannot change.
func (s Subject) least(ctx context.Context, limit groupLimit) (least float64, known bool) {
	if !s.ownKernel() {
		s.during(ctx, func() { least, known = leastOfGroups(s.Spec.GID, limit) })
		return least, known
	}
	out, err := s.read(ctx, "cd /sys/fs/cgroup/"+limit.controller+" && cat "+strings.Join(limit.v1, " "))
	if err != nil {
		return 0, false
	}
	return parseLimit(out)
}

// during calls do while a process of the agent runs.
func (s Subject) during(ctx context.Context, do func()) {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	stdin, end := io.Pipe()
	out, begun := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Prison.Exec(ctx, prison.Process{Argv: []string{"sh", "-c", "echo; read _"}, Stdin: stdin, Stdout: begun}) //nolint:errcheck // then nothing is found
		begun.Close()
	}()
	if _, err := out.Read(make([]byte, 1)); err == nil {
		do()
	}
	end.Close()
	out.Close()
	<-ended
}

// groupLimit is a limit of control groups: the controller, and for each version the files of a group with the limit, or with the limit and
// its divisor.
type groupLimit struct {
	controller string
	v1, v2     []string
}

var (
	memoryLimit    = groupLimit{"memory", []string{"memory.limit_in_bytes"}, []string{"memory.max"}}
	processorLimit = groupLimit{"cpu", []string{"cpu.cfs_quota_us", "cpu.cfs_period_us"}, []string{"cpu.max"}}
	// socketLimit exists only in version 1. Version 2 counts the memory of sockets together with the rest.
	socketLimit = groupLimit{"memory", []string{"memory.kmem.tcp.limit_in_bytes"}, nil}
)

// read reads the limit from a group's folder on the host.
func (l groupLimit) read(folder string, unified bool) (limit float64, known bool) {
	files, text := l.v1, ""
	if unified {
		files = l.v2
	}
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return 0, false
		}
		text += string(content)
	}
	return parseLimit(text)
}

// parseLimit reads a number, or a number and its divisor. Without a limit, a group has a negative number, the word max, or no text.
func parseLimit(text string) (limit float64, known bool) {
	divisor := 1.0
	n, _ := fmt.Sscan(text, &limit, &divisor)
	return limit / divisor, n > 0 && limit > 0
}
