package gitops

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ownToken returns what our lock on an index holds: a text that is drawn once for each directory
// of host state and kept there, so that a lock left by a crash at any moment proves whose it is.
func ownToken(dir string) (string, error) {
	name := filepath.Join(dir, "token")
	content, err := os.ReadFile(name)
	if err == nil && len(content) > 0 {
		return string(content), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	token := "airlock " + hex.EncodeToString(b[:]) + "\n"
	return token, WriteFile(name, []byte(token), 0o600)
}

// lockIndex takes the index lock the way git does.
func lockIndex(lock, token string) error {
	f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if errors.Is(err, os.ErrExist) {
		return ErrIndexLocked
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(token)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(lock) // created above, and of no use without its token
	}
	return err
}

// ownsLock tells whether the lock is there and ours.
func ownsLock(lock, token string) bool {
	content, err := os.ReadFile(lock)
	return err == nil && token != "" && string(content) == token
}

// unlockIndex removes the lock if it is ours.
func unlockIndex(lock, token string) {
	if ownsLock(lock, token) {
		_ = os.Remove(lock)
	}
}

// lockFile is a lock of git's own on a ref, told apart from a later one of the same name.
type lockFile struct {
	Path  string `json:"path"`
	Inode uint64 `json:"inode"`
	Time  int64  `json:"time"` // of its last change, nanoseconds
}

func identify(name string) (lockFile, bool) {
	info, err := os.Lstat(name)
	if err != nil {
		return lockFile{}, false
	}
	l := lockFile{Path: name, Time: info.ModTime().UnixNano()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		l.Inode = stat.Ino
	}
	return l, true
}

// refLocks identifies the files by which a prepared transaction holds its refs, HEAD and packed-refs.
func (r *Repository) refLocks(updates []RefUpdate) []lockFile {
	names := []string{filepath.Join(r.GitDir, "HEAD.lock"), filepath.Join(r.CommonDir, "packed-refs.lock")}
	for _, u := range updates {
		names = append(names, filepath.Join(r.CommonDir, u.Ref+".lock"))
	}
	var locks []lockFile
	for _, name := range names {
		if l, ok := identify(name); ok {
			locks = append(locks, l)
		}
	}
	return locks
}

// holder is a process, told apart from a later one with the same number.
type holder struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // boot and start time, where /proc tells
}

func holderOf(pid int) holder { return holder{pid, startOf(pid)} }

// startOf tells when a process was started; empty if it is dead, or there is no /proc.
func startOf(pid int) string {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name in parentheses may hold anything; state is the first field after it, start time the twentieth.
	_, rest, _ := cutLast(string(content), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot)) + " " + fields[19]
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// alive tells whether the process may still run.
func (h holder) alive() bool {
	if h.PID <= 0 || errors.Is(syscall.Kill(h.PID, 0), syscall.ESRCH) {
		return false
	}
	return h.Start == "" || startOf(h.PID) == h.Start
}

// patience is how long recovery waits for a git of ours that outlived us: it ends when it sees the
// end of its input.
const patience = 5 * time.Second

// release waits until the git that held the refs in a landing has let go of them, and removes its locks
// if it died without doing so (with the machine, or killed by its number).
func release(h holder, locks []lockFile) error {
	for waited := time.Duration(0); h.alive(); waited += 5 * time.Millisecond {
		if waited > patience {
			return fmt.Errorf("%w: update-ref of an interrupted landing, process %d", ErrUnsettled, h.PID)
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, l := range locks {
		if now, ok := identify(l.Path); ok && now == l {
			if err := os.Remove(l.Path); err != nil {
				return err
			}
		}
	}
	return nil
}
