package walls

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// The kernel counts some resources of a user namespace for the owner of the namespace as well: the user who starts
// the prison. The agent gets a part of these resources, so that neither the agent nor the user can use up the
// other's.

// LeaveQuotas limits the resources that are counted for each namespace, see namespaces(7), to half of what the
// machine allows each user. Since there are few inotify(7) instances, the user keeps two thirds of these.
func LeaveQuotas() error {
	for name, part := range map[string]uint64{"instances": 3, "watches": 2} {
		all, err := readCount("/proc/sys/fs/inotify/max_user_" + name)
		if err != nil {
			continue // this kernel does not have it
		}
		const own = "/proc/sys/user/max_inotify_"
		// The file is not truncated, as a shell would do: a sysctl must be written in one call.
		if err := writeOnce(own+name, strconv.FormatUint(all/part, 10)); err != nil {
			return fmt.Errorf("bound inotify: %w", err)
		}
	}
	return nil
}

func readCount(path string) (uint64, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(content)), 10, 64)
}

func writeOnce(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

// halved are the limits that count for the owner, too. The agent gets half of each.
var halved = []int{unix.RLIMIT_SIGPENDING, unix.RLIMIT_MSGQUEUE, unix.RLIMIT_MEMLOCK}

// Rlimits are the limits by setrlimit(2) that stand in for control groups.
type Rlimits struct {
	Memory, PIDs uint64 // Memory in bytes for each process, PIDs for all processes and threads of the uid; zero means no limit
	ReadOnly     bool   // the prison is read-only, and works for the host
}

// Set sets these limits, and the ones that every prison has, for this process and its children.
func (r Rlimits) Set() (weaker []prison.Weakness, err error) {
	// 1 and not 0: where core dumps are piped to a program, the kernel respects no other limit (fs/coredump.c), and
	// that program runs on the host as root.
	limits := map[int]uint64{unix.RLIMIT_CORE: 1, unix.RLIMIT_RTPRIO: 0, unix.RLIMIT_NICE: 0}
	if missing := coreMissing(); missing != "" {
		delete(limits, unix.RLIMIT_CORE)
		weaker = append(weaker, prison.Weakness{Kind: prison.HostCoreProgram, Text: missing})
	}
	var now unix.Rlimit
	for _, resource := range halved {
		if unix.Getrlimit(resource, &now) == nil {
			limits[resource] = now.Cur / 2
		}
	}
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &now) == nil {
		limits[unix.RLIMIT_NOFILE] = r.mostFiles(now.Max)
	}
	if r.PIDs > 0 {
		limits[unix.RLIMIT_NPROC] = r.PIDs
	}
	if r.Memory > 0 {
		limits[unix.RLIMIT_DATA] = r.Memory
	}
	for resource, limit := range limits {
		l := unix.Rlimit{Cur: limit, Max: limit}
		if resource == unix.RLIMIT_NOFILE {
			l.Cur = min(limit, 1024) // select(2) fails beyond it
		}
		if err := setAtMost(resource, l); err != nil {
			return weaker, err
		}
	}
	return weaker, nil
}

// setAtMost sets a limit, or keeps the hard limit that this process has already if that one is lower and may not be raised. Shared
// machines give ordinary users such limits.
func setAtMost(resource int, l unix.Rlimit) error {
	err := unix.Setrlimit(resource, &l)
	var now unix.Rlimit
	if !errors.Is(err, unix.EPERM) || unix.Getrlimit(resource, &now) != nil || now.Max >= l.Max {
		return err
	}
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: min(l.Cur, now.Max), Max: now.Max})
}

// NoCores keeps the memory of this process, which has values of credentials, out of core dumps. If the limit cannot be set to 1, it is 0
// already.
func NoCores() {
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}) //nolint:errcheck // see above
}

// coreMissing describes the weakness of a prison where the limit of core dumps cannot be set to 1.
func coreMissing() string {
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &now) != nil || now.Max > 0 {
		return ""
	}
	if unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Max: 1}) == nil { // this process may raise the limit
		return ""
	}
	return "a crash inside starts the program that this host has for core dumps, if it has one: the hard limit is 0 (ulimit -Hc), and only 1 keeps it from that"
}

// readOnlyFiles is how many times as many descriptors a read-only prison may have as an agent's, since the exporter must continue after
// the agent has used up its limit. The kernel counts descriptors in flight for the uid in all namespaces, against the limit of the
// sender. The number is bounded because descriptors use memory that not every kernel counts.
const readOnlyFiles = 4

func (r Rlimits) mostFiles(host uint64) uint64 {
	if r.ReadOnly {
		return min(host, readOnlyFiles*prison.MostFiles)
	}
	return min(host/readOnlyFiles, prison.MostFiles)
}

// oomScore makes the kernel kill the agent's processes first when the machine is out of memory.
const oomScore = 500

// preferForKilling sets oomScore. If that fails, the prison is no less safe. A value written by root is also the minimum that the agent
// can set, see proc_pid_oom_score_adj(5). If this process does not have the rights of the host's root, [Landlock] keeps the agent from
// changing the value.
func preferForKilling(pid string) {
	path := "/proc/" + pid + "/oom_score_adj"
	if now, err := os.ReadFile(path); err == nil {
		score, _ := strconv.Atoi(strings.TrimSpace(string(now)))
		// on failure the prison is no less safe
		os.WriteFile(path, []byte(strconv.Itoa(max(score, oomScore))), 0) //nolint:errcheck
	}
}

// looseScore reports whether the agent could lower its score again. The parent has set the score. A process that has changed its
// credentials, such as this one, may write to its own folder in /proc only while it is dumpable. That is safe here, since no other
// process is inside yet.
func looseScore() bool {
	unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)       //nolint:errcheck // cannot fail with these arguments
	defer unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) //nolint:errcheck // cannot fail with these arguments
	const path = "/proc/self/oom_score_adj"
	if writeOnce(path, "0") != nil {
		return false
	}
	preferForKilling("self")
	return true
}

// leaveRealTime gives this thread's children the scheduling policy and priority of an ordinary process. Otherwise
// the agent would inherit the caller's, and a version 1 control group without a real-time budget would refuse to
// take the process.
func leaveRealTime() error {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return fmt.Errorf("look at the scheduling policy: %w", err)
	}
	if attr.Policy != unix.SCHED_FIFO && attr.Policy != unix.SCHED_RR && attr.Policy != unix.SCHED_DEADLINE {
		return nil
	}
	attr.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
	if err := unix.SchedSetAttr(0, attr, 0); err != nil {
		return fmt.Errorf("set the scheduling policy: %w", err)
	}
	return nil
}

// niceness lets the user's own programs have the processor first, see nice(1).
const niceness = 5

// StepBack lowers the priority of this process to that of an agent. A read-only prison works for the host, so it keeps its priority.
func (r Rlimits) StepBack() error {
	const ofProcess, none = 1, 0                          // linux/ioprio.h
	unix.Syscall(unix.SYS_IOPRIO_SET, ofProcess, 0, none) //nolint:errcheck // has no effect without an I/O scheduler
	if r.ReadOnly {
		return nil
	}
	// A process with an even lower priority must not raise it here. getpriority(2): the system call returns 20 minus the nice value.
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil && 20-now >= niceness {
		return nil
	}
	return unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
}
