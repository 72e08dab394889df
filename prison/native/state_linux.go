package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops/procstat"
	"github.com/git-airlock/git-airlock/prison/hostfile"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// Names of the keeper's files in Spec.Dir.
const (
	lockName    = "lock"
	stateName   = "state.json"
	commandName = "command.json"
	logName     = "command.log"
	timesName   = logName + ".times"
)

// state is the data that Stop needs when the keeper does not answer. The keeper writes it into the state file.
type state struct {
	Keeper   processID `json:"keeper"`
	Init     processID `json:"init"`
	Relay    processID `json:"relay"`    // carries the packets of a network
	Recorder processID `json:"recorder"` // records the programs of a recorded prison
	Cgroups  []string  `json:"cgroups"`  // paths of the control groups
	Lock     string    `json:"lock"`     // identity of the lock that the keeper holds, see [identityOf]
}

// elsewhere reports whether dir is a copy of another prison's folder, the state is that prison's, and that prison still runs.
func (s state) elsewhere(dir string) bool {
	return s.Lock != "" && s.Lock != identityOf(filepath.Join(dir, lockName)) && (s.Keeper.alive() || s.Init.alive())
}

// processID identifies a process. A pid can be reused, but not with the same start time in one boot.
type processID struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // proc_pid_stat(5), field 22
	Boot  string `json:"boot"`  // identifies the boot of the machine
	Space string `json:"space"` // identifies the pid namespace of PID; empty means the reader's
}

func identify(pid int) processID {
	start, _ := startTime(pid)
	return processID{PID: pid, Start: start, Boot: bootID(), Space: pidSpace()}
}

func startTime(pid int) (string, error) {
	fields, err := procstat.Fields(pid)
	if err != nil {
		return "", err
	}
	const field22 = 22 - 3 // the first field in the list is field 3
	if len(fields) <= field22 {
		return "", errors.New("short stat line")
	}
	return fields[field22], nil
}

func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

func pidSpace() string {
	space, _ := os.Readlink("/proc/self/ns/pid")
	return space
}

func (p processID) alive() bool {
	fd, alive := p.open()
	if alive {
		unix.Close(fd)
	}
	return alive
}

// open returns a pidfd of exactly that process, or false if the process has ended. The start time is compared after
// opening, when the pid can no longer be reused. A zombie counts as ended, since its parent may never wait for it:
// the first process of many containers does not.
func (p processID) open() (pidfd int, alive bool) {
	if p.PID <= 0 || p.Boot != bootID() || p.Space != "" && p.Space != pidSpace() {
		return -1, false
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return -1, false
	}
	if start, err := startTime(p.PID); err != nil || start != p.Start || wire.HasEnded(fd) {
		unix.Close(fd)
		return -1, false
	}
	return fd, true
}

// signal sends a signal to the process if it still exists.
func (p processID) signal(sig unix.Signal) {
	if fd, alive := p.open(); alive {
		unix.PidfdSendSignal(fd, sig, nil, 0)
		unix.Close(fd)
	}
}

// end kills the process and waits until it is dead. When an init is dead, all processes in its pid namespace are
// dead, too (pid_namespaces(7)).
func (p processID) end() error {
	fd, alive := p.open()
	if !alive {
		return nil
	}
	defer unix.Close(fd)
	unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	if err := awaitDeath(fd, walls.StopPatience); err != nil {
		return fmt.Errorf("process %d: %w (one in a frozen control group does not, see /proc/%d/cgroup)", p.PID, err, p.PID)
	}
	return nil
}

// await waits until the process has ended by itself, for at most the patience. The process may be stopped by a signal.
func (p processID) await(patience time.Duration) {
	if fd, alive := p.open(); alive {
		unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
		awaitDeath(fd, patience) //nolint:errcheck // if the process has not ended, the caller ends it
		unix.Close(fd)
	}
}

// awaitDeath waits until the process of a pidfd has ended.
func awaitDeath(pidfd int, patience time.Duration) error {
	for deadline := time.Now().Add(patience); !wire.HasEnded(pidfd); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return errors.New("a killed process does not end")
		}
	}
	return nil
}

func readState(dir string) (s state, err error) {
	err = hostfile.ReadRunning(filepath.Join(dir, stateName), &s)
	return s, err
}

// tryLock takes the lock that the keeper holds for its life. Closing the file releases the lock. A nil file means
// that another process holds the lock. A lock file that was removed does not count: Wipe removes it, and a process
// that opened it before must open the new one.
func tryLock(dir string) (lock *os.File, err error) {
	for {
		f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, unix.EROFS) { // Stop must end the prison on such a file system, too
			f, err = os.Open(filepath.Join(dir, lockName))
		}
		if err != nil {
			return nil, err
		}
		fd := int(f.Fd())
		var st unix.Stat_t
		if err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err == nil {
			err = unix.Fstat(fd, &st)
		}
		if err == nil && st.Nlink > 0 {
			return f, nil
		}
		f.Close()
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("lock: %w", err)
		}
	}
}

// identityOf returns a string that distinguishes a file from every other, including its copies, and that stays the
// same when the file is moved within its file system.
func identityOf(path string) string {
	var s unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &s) != nil {
		return ""
	}
	return fmt.Sprintf("%d %d.%09d", s.Ino, s.Btime.Sec, s.Btime.Nsec)
}
