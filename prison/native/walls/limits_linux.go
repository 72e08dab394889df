package walls

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// ownThreads is the number of threads that init itself needs within the limit of processes and threads.
const ownThreads = 16

// StopPatience is how long a prison may take to end. Unmounting an overlay writes all dirty pages of the host's
// file system below it to the disk.
const StopPatience = 2 * time.Minute

// Limits enforces [prison.Limits] on this machine: with control groups where the caller may create some, and
// otherwise with setrlimit(2), which limits less.
type Limits struct {
	groups  []group
	Rlimits Rlimits
	Weaker  []prison.Weakness
}

// group is a control group to create, with the contents of its files.
type group struct {
	dir      string // path
	settings []setting
}

type setting struct {
	file, value string // a file of the group, and its content
	optional    bool   // the file does not exist in every kernel
}

// ReadOnlyLimits plans the limits of a prison that ends with its caller. Where possible, such a prison gets its own control groups beside
// the agent's. Unless it is alone, it also gets a memory limit for each process.
func ReadOnlyLimits(s prison.Spec) *Limits {
	name := groupName(s) + "-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(readOnly.Add(1), 10)
	l := planGroups(s, name, enableControllers)
	for _, g := range l.groups {
		sweep(filepath.Dir(g.dir))
	}
	if l.Weaker = nil; !s.Alone {
		l.Rlimits.Memory = dataLimit(s.Limits.OrDefault())
	}
	return l
}

// Sweep removes the control groups of prisons whose processes were killed.
func Sweep(s prison.Spec) {
	for _, g := range planGroups(s, groupName(s), predictControllers).groups {
		sweep(filepath.Dir(g.dir))
	}
}

// readOnly numbers the read-only prisons of this process.
var readOnly atomic.Uint64

// sweep removes the groups of killed read-only prisons, also if their repository is gone. The name of such a group contains the id of its
// process, and the group stays while that process runs. An agent's group names no process, and stays: it may be empty while it is made.
func sweep(above string) {
	entries, _ := os.ReadDir(above) // there may be none
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), groupPrefix)
		_, owner, _ := strings.Cut(name, "-")
		pid, _, readOnly := strings.Cut(owner, "-")
		if _, err := os.Stat("/proc/" + pid); ok && readOnly && err != nil {
			unix.Rmdir(filepath.Join(above, e.Name())) //nolint:errcheck // a group that is still in use stays
		}
	}
}

// dataLimit is RLIMIT_DATA for every process. RLIMIT_AS would count memory that Go and JavaScript only reserve. The
// limit also applies to init, whose runtime maps more than it uses, hence the minimum.
func dataLimit(l prison.Limits) uint64 { return uint64(max(l.Memory, 256<<20)) }

// PlanLimits finds where the groups of a prison can be created, and enables their controllers. It does not create
// the groups.
func PlanLimits(s prison.Spec) *Limits { return planGroups(s, groupName(s), enableControllers) }

// planGroups finds where groups with a name can be created. offers is [predictControllers], which changes nothing, or
// [enableControllers].
func planGroups(s prison.Spec, name string, offers func(dir string) []string) *Limits {
	want := s.Limits.OrDefault()
	memory, sockets := strconv.FormatInt(want.Memory, 10), strconv.FormatInt(want.Sockets(), 10)
	pids := []setting{{file: "pids.max", value: strconv.Itoa(want.PIDs + ownThreads)}}
	period, quota := strconv.Itoa(cpuPeriod), strconv.Itoa(max(1000, int(math.Round(want.CPUs*cpuPeriod))))
	l := &Limits{Rlimits: Rlimits{ReadOnly: s.ReadOnly}}
	mounts := cgroupMounts()
	v2 := mounts.unified(name, offers)
	for _, c := range []struct {
		controller string
		lacking    prison.Weakness
		v1, v2     []setting
		fallback   func()
	}{
		{"memory", prison.Weakness{Kind: prison.LooseMemoryLimit, Text: "memory is limited for each process, and shared memory (memfd, shm) is not limited"},
			[]setting{{"memory.limit_in_bytes", memory, false}, {"memory.memsw.limit_in_bytes", memory, true}, {tcpLimitFile, sockets, true}},
			[]setting{{"memory.max", memory, false}, {"memory.swap.max", "0", true}, {"memory.oom.group", "0", true}},
			func() { l.Rlimits.Memory = dataLimit(want) }},
		{"pids", prison.Weakness{Kind: prison.LooseProcessLimit, Text: "the number of processes is limited by the uid, not by a control group"}, pids, pids,
			func() { l.Rlimits.PIDs = uint64(want.PIDs + ownThreads) }},
		{"cpu", prison.Weakness{Kind: prison.NoCPULimit, Text: "processor time is not limited"},
			[]setting{{file: "cpu.cfs_period_us", value: period}, {file: "cpu.cfs_quota_us", value: quota}},
			[]setting{{file: "cpu.max", value: quota + " " + period}},
			func() {}},
	} {
		if parent := mounts.legacy[c.controller]; parent != "" && unix.Access(parent, unix.W_OK) == nil {
			l.add(filepath.Join(parent, name), c.v1)
			if c.controller == "memory" && unix.Access(filepath.Join(parent, tcpLimitFile), unix.F_OK) != nil {
				l.Weaker = append(l.Weaker, prison.Weakness{Kind: prison.LooseMemoryLimit, Text: "memory of sockets is not counted (no " + tcpLimitFile + ")"})
			}
		} else if v2 != nil && slices.Contains(v2.controllers, c.controller) {
			l.add(v2.dir, c.v2)
		} else {
			c.fallback()
			l.Weaker = append(l.Weaker, c.lacking)
		}
	}
	return l
}

// groupName returns a name without information about the host, since it is visible inside where there is no
// namespace for control groups.
func groupName(s prison.Spec) string {
	sum := sha256.Sum256([]byte(s.ID + "\x00" + s.Dir))
	return fmt.Sprintf("%s%x", groupPrefix, sum[:6])
}

const groupPrefix = "box-"

func (l *Limits) add(dir string, settings []setting) {
	for i := range l.groups {
		if l.groups[i].dir == dir {
			l.groups[i].settings = append(l.groups[i].settings, settings...)
			return
		}
	}
	l.groups = append(l.groups, group{dir, settings})
}

// tcpLimitFile limits the memory of TCP sockets. Version 1 counts this memory separately, and only when a limit is
// set. Version 2 counts it with other memory.
const tcpLimitFile = "memory.kmem.tcp.limit_in_bytes"

const cpuPeriod = 100000 // microseconds

// Directories returns the paths of the groups.
func (l *Limits) Directories() (dirs []string) {
	for _, g := range l.groups {
		dirs = append(dirs, g.dir)
	}
	return dirs
}

// Make creates the groups.
func (l *Limits) Make() error {
	for _, g := range l.groups {
		if err := again(g.make); err != nil {
			return err
		}
	}
	return nil
}

// again repeats a step that fails because a group does not exist any more. Another process may have removed the group while it was empty,
// because it took it for the group of a killed prison, see [sweep].
func again(do func() error) (err error) {
	const tries = 10
	for range tries {
		if err = do(); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			return err
		}
	}
	return err
}

func (g group) make() error {
	if err := os.Mkdir(g.dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make control group: %w", err)
	}
	for _, s := range g.settings {
		err := os.WriteFile(filepath.Join(g.dir, s.file), []byte(s.value), 0)
		if err != nil && !s.optional {
			return fmt.Errorf("limit: %w", err)
		}
	}
	return nil
}

// Enter moves a process that has no children yet into the groups.
func (l *Limits) Enter(pid int) error {
	id := strconv.Itoa(pid)
	preferForKilling(id)
	for _, g := range l.groups {
		err := again(func() error {
			err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(id), 0)
			if errors.Is(err, os.ErrNotExist) {
				err = errors.Join(err, g.make())
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("enter control group: %w", err)
		}
	}
	return nil
}

// Remove removes the groups. No process may run in them any more.
func (l *Limits) Remove() (err error) {
	for _, g := range l.groups {
		err = errors.Join(err, removeCgroup(g.dir))
	}
	return err
}

// ClearGroup kills the remaining processes in a group of an ended prison, and removes the group. It also removes the groups of killed
// prisons.
func ClearGroup(dir string) error {
	defer sweep(filepath.Dir(dir))
	return removeCgroup(dir)
}

// removeCgroup kills the processes in a group and removes it.
func removeCgroup(dir string) error {
	for deadline := time.Now().Add(StopPatience); ; time.Sleep(2 * time.Millisecond) {
		err := unix.Rmdir(dir)
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if err != unix.EBUSY || time.Now().After(deadline) {
			return fmt.Errorf("remove control group %s: %w", dir, err)
		}
		for _, pid := range members(dir) {
			killMember(dir, pid)
		}
	}
}

func members(dir string) (pids []int) {
	content, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	for _, field := range strings.Fields(string(content)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killMember kills a process if the process is still in the group after its pidfd was opened.
func killMember(dir string, pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if slices.Contains(members(dir), pid) {
		unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// Numbers returns the names in a folder that are numbers.
func Numbers(dir string) (all []int, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, n)
		}
	}
	return all, err
}
