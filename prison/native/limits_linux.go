package native

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

// ownThreads is what init itself needs of the limit of processes and threads.
const ownThreads = 16

// limits is how the bounds of [prison.Limits] are kept on this machine: by control groups where the
// caller may make some, else by setrlimit(2), which bounds less.
type limits struct {
	groups                   []group
	memoryRlimit, pidsRlimit uint64
	weaker                   []prison.Weakness
}

// group is a control group to be made, with the files to write in it.
type group struct {
	dir      string
	settings []setting
}

type setting struct {
	file, value string
	optional    bool // not on every kernel
}

// lookLimits are those of a prison that ends with its caller: groups of its own beside the agent's, where there may be some,
// and a limit for each process.
func lookLimits(s prison.Spec) *limits {
	name := groupName(s) + "-"
	l := planGroups(s, name+strconv.Itoa(os.Getpid())+"-"+strconv.FormatUint(looks.Add(1), 10), asked)
	for _, g := range l.groups {
		sweepLooks(filepath.Join(filepath.Dir(g.dir), name))
	}
	l.memoryRlimit, l.weaker = dataLimit(s.Limits.OrDefault()), nil
	return l
}

// looks counts them: a process may have several.
var looks atomic.Uint64

// sweepLooks removes the groups of lookers that were killed. One whose processes still end stays (EBUSY), for the next.
func sweepLooks(prefix string) {
	left, _ := filepath.Glob(prefix + "*") // there may be none
	for _, dir := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(dir, prefix), "-")
		if _, err := os.Stat("/proc/" + pid); err != nil {
			unix.Rmdir(dir) //nolint:errcheck // see above
		}
	}
}

// dataLimit is RLIMIT_DATA of every process. RLIMIT_AS would count what Go and JavaScript only reserve.
// Init is under it, too, and its runtime maps more than it uses.
func dataLimit(l prison.Limits) uint64 { return uint64(max(l.Memory, 256<<20)) }

// planLimits finds where groups could be made; it makes none. By [foretold] it changes nothing, by [asked] it gets controllers for them.
func planLimits(s prison.Spec, offers func(dir string) []string) *limits {
	return planGroups(s, groupName(s), offers)
}

// planGroups does so for groups of a name.
func planGroups(s prison.Spec, name string, offers func(dir string) []string) *limits {
	want := s.Limits.OrDefault()
	l := &limits{}
	mounts := cgroupMounts()
	v2 := mounts.unified(name, offers)
	for _, c := range []struct {
		controller string
		lacking    prison.Weakness
		v1, v2     []setting
		fallback   func()
	}{
		{"memory", prison.Weakness{Kind: prison.LooseMemoryLimit, Text: "memory is limited for each process, not for all together"}, memoryV1(want), memoryV2(want),
			func() { l.memoryRlimit = dataLimit(want) }},
		{"pids", prison.Weakness{Kind: prison.LooseProcessLimit, Text: "the number of processes is limited by the uid, not by a control group"}, pidsMax(want), pidsMax(want),
			func() { l.pidsRlimit = uint64(want.PIDs + ownThreads) }},
		{"cpu", prison.Weakness{Kind: prison.NoCPULimit, Text: "processor time is not limited"}, cpuV1(want), cpuV2(want), func() {}},
	} {
		if parent := mounts.legacy[c.controller]; parent != "" && unix.Access(parent, unix.W_OK) == nil {
			l.add(filepath.Join(parent, name), c.v1)
			if c.controller == "memory" && unix.Access(filepath.Join(parent, tcpLimitFile), unix.F_OK) != nil {
				l.weaker = append(l.weaker, prison.Weakness{Kind: prison.LooseMemoryLimit, Text: "memory: what sockets hold is not counted (no " + tcpLimitFile + ")"})
			}
		} else if v2 != nil && slices.Contains(v2.controllers, c.controller) {
			l.add(v2.dir, c.v2)
		} else {
			c.fallback()
			l.weaker = append(l.weaker, c.lacking)
		}
	}
	return l
}

// groupName tells nothing: where there is no namespace for control groups it is visible inside.
func groupName(s prison.Spec) string {
	sum := sha256.Sum256([]byte(s.ID + "\x00" + s.Dir))
	return fmt.Sprintf("box-%x", sum[:6])
}

func (l *limits) add(dir string, settings []setting) {
	for i := range l.groups {
		if l.groups[i].dir == dir {
			l.groups[i].settings = append(l.groups[i].settings, settings...)
			return
		}
	}
	l.groups = append(l.groups, group{dir, settings})
}

func memoryV1(l prison.Limits) []setting {
	bytes := strconv.FormatInt(l.Memory, 10)
	return []setting{
		{file: "memory.limit_in_bytes", value: bytes},
		{"memory.memsw.limit_in_bytes", bytes, true},
		{tcpLimitFile, strconv.FormatInt(l.Sockets(), 10), true},
	}
}

// tcpLimitFile bounds what sockets hold, which version 1 counts apart, and only when there is a limit; version 2 counts
// it with the rest of the memory.
const tcpLimitFile = "memory.kmem.tcp.limit_in_bytes"

func memoryV2(l prison.Limits) []setting {
	return []setting{
		{file: "memory.max", value: strconv.FormatInt(l.Memory, 10)},
		{"memory.swap.max", "0", true},
		{"memory.oom.group", "0", true},
	}
}

func pidsMax(l prison.Limits) []setting {
	return []setting{{file: "pids.max", value: strconv.Itoa(l.PIDs + ownThreads)}}
}

const cpuPeriod = 100000 // microseconds

func cpuQuota(l prison.Limits) int { return max(1000, int(math.Round(l.CPUs*cpuPeriod))) }

func cpuV1(l prison.Limits) []setting {
	return []setting{
		{file: "cpu.cfs_period_us", value: strconv.Itoa(cpuPeriod)},
		{file: "cpu.cfs_quota_us", value: strconv.Itoa(cpuQuota(l))},
	}
}

func cpuV2(l prison.Limits) []setting {
	return []setting{{file: "cpu.max", value: fmt.Sprintf("%d %d", cpuQuota(l), cpuPeriod)}}
}

func (l *limits) directories() (dirs []string) {
	for _, g := range l.groups {
		dirs = append(dirs, g.dir)
	}
	return dirs
}

// make makes the groups.
func (l *limits) make() error {
	for _, g := range l.groups {
		if err := os.Mkdir(g.dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make control group: %w", err)
		}
		for _, s := range g.settings {
			err := os.WriteFile(filepath.Join(g.dir, s.file), []byte(s.value), 0)
			if err != nil && !s.optional {
				return fmt.Errorf("limit: %w", err)
			}
		}
	}
	return nil
}

// enter puts a process that has started nothing yet into the groups.
func (l *limits) enter(pid int) error {
	id := strconv.Itoa(pid)
	preferForKilling(id)
	for _, g := range l.groups {
		if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(id), 0); err != nil {
			return fmt.Errorf("enter control group: %w", err)
		}
	}
	return nil
}

// remove removes the groups, in which nothing runs any more.
func (l *limits) remove() (err error) {
	for _, g := range l.groups {
		err = errors.Join(err, removeCgroup(g.dir))
	}
	return err
}

// removeCgroup kills what is in a group and removes it.
func removeCgroup(dir string) error {
	for deadline := time.Now().Add(stopPatience); ; time.Sleep(2 * time.Millisecond) {
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

// killMember kills a process if it is in the group still after its descriptor was opened.
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
