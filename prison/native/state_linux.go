package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/hostfile"

	"golang.org/x/sys/unix"
)

// state is what Stop needs to know when the keeper cannot be asked: the keeper writes it.
type state struct {
	Keeper  processID `json:"keeper"`
	Init    processID `json:"init"`
	Relay   processID `json:"relay"`   // of an open network
	Cgroups []string  `json:"cgroups"` // directories
	Lock    string    `json:"lock"`    // whose lock it is that the keeper holds, see [identityOf]
}

// elsewhere reports whether the state came here with a copy of the folder, and what it is about still runs.
func (s state) elsewhere(dir string) bool {
	return s.Lock != "" && s.Lock != identityOf(filepath.Join(dir, lockName)) && (s.Keeper.alive() || s.Init.alive())
}

// processID names a process for good: pids come again, but not with the same start time in one boot.
type processID struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // proc_pid_stat(5), field 22
	Boot  string `json:"boot"`
	Space string `json:"space"` // the pid namespace in which that is its pid; empty: the reader's
}

func identify(pid int) processID {
	start, _ := startTime(pid)
	return processID{PID: pid, Start: start, Boot: bootID(), Space: pidSpace()}
}

func startTime(pid int) (string, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	rest, _ := afterLast(string(stat), ")")
	fields := strings.Fields(rest)
	const field22 = 22 - 3 // the first after the name is field 3
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

// open returns a pidfd of exactly that process, or false if the process has ended. The start time is compared
// after opening, when the pid can no longer change hands. A zombie has ended: its parent may never wait for it,
// as the first process of many containers does not.
func (p processID) open() (pidfd int, alive bool) {
	if p.PID <= 0 || p.Boot != bootID() || p.Space != "" && p.Space != pidSpace() {
		return -1, false
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return -1, false
	}
	if start, err := startTime(p.PID); err != nil || start != p.Start || hasEnded(fd) {
		unix.Close(fd)
		return -1, false
	}
	return fd, true
}

// hasEnded reports whether the process of a pidfd has ended, waited for or not (pidfd_open(2)).
func hasEnded(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// signal sends a signal to the process if it is still there.
func (p processID) signal(sig unix.Signal) {
	if fd, alive := p.open(); alive {
		unix.PidfdSendSignal(fd, sig, nil, 0)
		unix.Close(fd)
	}
}

// end kills the process and waits until it is dead, which for an init means that everything in
// its pid namespace is (pid_namespaces(7)).
func (p processID) end(patience time.Duration) error {
	fd, alive := p.open()
	if !alive {
		return nil
	}
	defer unix.Close(fd)
	unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	if err := awaitDeath(fd, patience); err != nil {
		return fmt.Errorf("process %d: %w (one in a frozen control group does not, see /proc/%d/cgroup)", p.PID, err, p.PID)
	}
	return nil
}

// awaitDeath waits until the process of a pidfd has ended.
func awaitDeath(pidfd int, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return errors.New("a killed process does not end")
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("wait for process: %w", err)
		}
		if n > 0 {
			return nil
		}
	}
}

func readState(dir string) (s state, err error) {
	err = hostfile.Read(filepath.Join(dir, stateName), &s)
	return s, err
}

// tryLock takes the lock that the keeper holds for its life; it ends with the file. Nil: somebody else
// holds it. A lock whose file was removed is nobody's: Wipe removes it, who came meanwhile starts again.
func tryLock(dir string) (lock *os.File, err error) {
	for {
		f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
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

// identityOf tells a file from every other, a copy of it among them, wherever it is moved on its file system.
func identityOf(path string) string {
	var s unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &s) != nil {
		return ""
	}
	return fmt.Sprintf("%d %d.%09d", s.Ino, s.Btime.Sec, s.Btime.Nsec)
}
