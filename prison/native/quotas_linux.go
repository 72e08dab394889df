package native

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// What the kernel grants a user it counts for the owner of a user namespace as well: for the user who starts a prison.
// Some of it is for the agent, so that neither can use up what the other needs.

// leaveQuotas bounds what is counted for each namespace, see namespaces(7), by halves of what the machine allows each user:
// two instances of inotify(7) in three stay the user's, since there are few.
func (b *builder) leaveQuotas() error {
	for name, part := range map[string]uint64{"instances": 3, "watches": 2} {
		all, err := readCount("/proc/sys/fs/inotify/max_user_" + name)
		if err != nil {
			continue // not in this kernel
		}
		const own = "/proc/sys/user/max_inotify_"
		// Not truncated, as a shell would: sysctls are written in one go.
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

// halved are limits that count for the owner, too; the agent has half.
var halved = []int{unix.RLIMIT_SIGPENDING, unix.RLIMIT_MSGQUEUE, unix.RLIMIT_MEMLOCK}

func (b *builder) setRlimits() error {
	// 1 and not 0: where core dumps go to a program, the kernel heeds no limit but that one
	// (fs/coredump.c), and the program is the host's and runs as root.
	limits := map[int]uint64{unix.RLIMIT_CORE: 1, unix.RLIMIT_RTPRIO: 0, unix.RLIMIT_NICE: 0}
	if missing := coreMissing(); missing != "" {
		delete(limits, unix.RLIMIT_CORE)
		b.lacks(prison.HostCoreProgram, missing)
	}
	var now unix.Rlimit
	for _, resource := range halved {
		if unix.Getrlimit(resource, &now) == nil {
			limits[resource] = now.Cur / 2
		}
	}
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &now) == nil {
		limits[unix.RLIMIT_NOFILE] = b.mostFiles(now.Max)
	}
	if b.PIDsRlimit > 0 {
		limits[unix.RLIMIT_NPROC] = b.PIDsRlimit
	}
	if b.MemoryRlimit > 0 {
		limits[unix.RLIMIT_DATA] = b.MemoryRlimit
	}
	for resource, limit := range limits {
		l := unix.Rlimit{Cur: limit, Max: limit}
		if resource == unix.RLIMIT_NOFILE {
			l.Cur = min(limit, 1024) // beyond it select(2) breaks
		}
		if err := unix.Setrlimit(resource, &l); err != nil {
			return err
		}
	}
	return nil
}

// coreMissing says what a prison is without where the limit of core dumps cannot be what it should be.
func coreMissing() string {
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &now) != nil || now.Max > 0 {
		return ""
	}
	if unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Max: 1}) == nil { // who may raise it
		return ""
	}
	return "a crash inside starts the program that this host has for core dumps, if it has one: the hard limit is 0 (ulimit -Hc), and only 1 keeps it from that"
}

// lookingFiles is by how much more descriptors a prison that looks may have than one that works. Descriptors use memory that
// not every kernel counts, and what is in flight counts for a uid, wherever it is, up to the limit of who sends: the exporter goes on
// where the agent has used up its own.
const lookingFiles = 4

func (b *builder) mostFiles(host uint64) uint64 {
	if b.Spec.ReadOnly {
		return min(host, lookingFiles*prison.MostFiles)
	}
	return min(host/lookingFiles, prison.MostFiles)
}

// oomScore makes the kernel, when the machine is out of memory, choose the agent's processes first.
const oomScore = 500

// preferForKilling does so; the prison is as good without. Written by root the value is also the least that the agent can
// set, see proc_pid_oom_score_adj(5); where root is not what it was, or nobody is, [builder.confine] keeps it.
func preferForKilling(pid string) {
	path := "/proc/" + pid + "/oom_score_adj"
	if now, err := os.ReadFile(path); err == nil {
		score, _ := strconv.Atoi(strings.TrimSpace(string(now)))
		os.WriteFile(path, []byte(strconv.Itoa(max(score, oomScore))), 0) //nolint:errcheck // see above
	}
}

// looseScore reports whether the agent could take its score back. The parent has set it; who changed credentials, as this
// process has, may write in its own folder of /proc only as long as it may be dumped, and nobody is here yet to look.
func looseScore() bool {
	unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)       //nolint:errcheck // it cannot fail with these
	defer unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) //nolint:errcheck // as above
	const path = "/proc/self/oom_score_adj"
	if writeOnce(path, "0") != nil {
		return false
	}
	preferForKilling("self")
	return true
}

// leaveRealTime has what this thread starts begin as an ordinary process, with the priority of one: the caller's would be the
// agent's as well, and a control group that was given no real time (version 1) does not take it in.
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

// niceness leaves the processor to the user's own programs first, see nice(1).
const niceness = 5

// stepBack does so for what works, not for what only looks on the host's behalf.
func (b *builder) stepBack() error {
	const ofProcess, none = 1, 0                          // linux/ioprio.h
	unix.Syscall(unix.SYS_IOPRIO_SET, ofProcess, 0, none) //nolint:errcheck // without disks' schedulers it means nothing
	if b.Spec.ReadOnly {
		return nil
	}
	// What was started behind the others already may not come forward (getpriority(2): the call says 20 less).
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil && 20-now >= niceness {
		return nil
	}
	return unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
}
