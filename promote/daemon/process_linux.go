package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops/procstat"
)

// process is a pidfd (pidfd_open(2)). It keeps the process id from being reused between a check and a signal. The
// value -1 stands for a process that has ended.
type process struct{ fd int }

func openProcess(pid int) (process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return process{-1}, nil
	}
	return process{fd}, err
}

func (p process) close() { _ = unix.Close(p.fd) }

// signal signals the process, if it has not ended.
func (p process) signal(s syscall.Signal) error {
	if p.fd < 0 {
		return nil
	}
	if err := unix.PidfdSendSignal(p.fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// ended waits up to within for the process to end. A pidfd becomes readable when its process ends.
func (p process) ended(within time.Duration) (bool, error) {
	if p.fd < 0 {
		return true, nil
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, int(within.Milliseconds()))
	if errors.Is(err, unix.EINTR) {
		err = nil
	}
	return n > 0, err
}

// holds reports whether a process has a file open.
func holds(pid int, file string) bool {
	want, err := os.Stat(file)
	if err != nil || pid <= 0 {
		return false
	}
	descriptors, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*") // empty if the process has ended
	for _, d := range descriptors {
		if info, err := os.Stat(d); err == nil && os.SameFile(info, want) {
			return true
		}
	}
	return false
}

// lockHolder returns the process that has locked a file by flock(2), according to the list in proc_locks(5), or 0 if there is none. On some
// file systems this list and stat(2) report different devices for a file. Therefore lockHolder compares only the inode, and checks that the
// process has the file open.
func lockHolder(file string) int {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	locks, _ := os.ReadFile("/proc/locks")
	suffix := ":" + strconv.FormatUint(inode(info), 10)
	for line := range strings.Lines(string(locks)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], suffix) {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && holds(pid, file) {
			return pid
		}
	}
	return 0
}

// commandLimit bounds what a message shows of a command line.
const commandLimit = 100

// shown returns the part of a command line that messages may repeat: the program, and the subcommand of git-airlock. The other words may
// hold a secret, as in --env NAME=VALUE, and the messages of a daemon are stored in its log.
func shown(command string) string {
	words := strings.Split(command, "\x00")
	if words[0] == "" {
		return "" // the process has ended
	}
	text := filepath.Base(words[0])
	if text == "git-airlock" && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
		text = strings.TrimSpace(text + " " + words[1])
	}
	return text[:min(len(text), commandLimit)]
}

// holderOf returns the process that has locked a file, as /proc describes it (proc_pid_cmdline(5), proc_pid_stat(5)).
func holderOf(file string) Holder {
	h := Holder{PID: lockHolder(file)}
	if h.PID == 0 {
		return h
	}
	command, _ := os.ReadFile("/proc/" + strconv.Itoa(h.PID) + "/cmdline") // empty if the process has ended
	h.Command = shown(string(command))
	stat, _ := procstat.Fields(h.PID)
	h.Stopped = len(stat) > 0 && strings.EqualFold(stat[0], "T")
	return h
}

// KeepDescriptors closes the caller's descriptors, except the standard streams, in processes that this one starts. A daemon that
// outlives this process would otherwise hold a lock of the caller, or the pipe with which another process waits for the end of
// this one. Kernels before 5.11 refuse this, which is ignored.
func KeepDescriptors() {
	unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) //nolint:errcheck // see above
}
