package land

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// token is what our lock on an index holds, and the file that keeps it.
type token struct{ file, text string }

func ownToken(dir string) (token, error) {
	text, err := gitops.Token(dir)
	return token{gitops.TokenPath(dir), text}, err
}

// lock takes an index lock the way git does. Linked into place, it has its text from the first instant; where
// the file system has no hard links, a crash in between leaves an empty lock that proves nothing, and the
// user is told of it as of any command's.
func (t token) lock(name string) error {
	written := t.file + ".new"
	// A power failure must not leave the name without the text.
	if err := errors.Join(os.WriteFile(written, []byte(t.text), 0o600), gitops.SyncPath(written)); err != nil {
		return err
	}
	err := os.Link(written, name)
	_ = os.Remove(written) // left by a crash, it is swept up with what was prepared
	if err == nil {
		return nil
	}
	if errors.Is(err, os.ErrExist) {
		return ErrIndexLocked
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if errors.Is(err, os.ErrExist) {
		return ErrIndexLocked
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(t.text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(name) // created above, and of no use without its text
	}
	return err
}

// owns reports whether the lock is there and ours.
func (t token) owns(name string) bool {
	content, err := os.ReadFile(name)
	return err == nil && string(content) == t.text
}

// unlock removes the lock if it is ours.
func (t token) unlock(name string) {
	if t.owns(name) {
		_ = os.Remove(name)
	}
}

// lockFile is a lock of git's own on a ref, told apart from a later one of the same name.
type lockFile struct {
	Path  gitops.AnyName `json:"path"` // from the repository's git directory, which may be moved
	Inode uint64         `json:"inode"`
	Time  int64          `json:"time"` // of its last change, nanoseconds
}

func identify(r *gitops.Repository, name string) (lockFile, bool) {
	info, err := os.Lstat(filepath.Join(r.CommonDir, name))
	if err != nil {
		return lockFile{}, false
	}
	l := lockFile{Path: gitops.AnyName(name), Time: info.ModTime().UnixNano()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		l.Inode = stat.Ino
	}
	return l, true
}

// refLocks identifies the files by which a prepared transaction holds its refs, HEAD and packed-refs.
func refLocks(r *gitops.Repository, updates []gitops.RefUpdate) []lockFile {
	here, _ := filepath.Rel(r.CommonDir, r.GitDir)
	const tables = "reftable/tables.list.lock"
	names := []string{filepath.Join(here, "HEAD.lock"), "packed-refs.lock", tables}
	if here != "." {
		names = append(names, filepath.Join(here, tables))
	}
	for _, u := range updates {
		names = append(names, u.Ref+".lock")
	}
	var locks []lockFile
	for _, name := range names {
		if l, ok := identify(r, name); ok {
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

// alive reports whether the process may still run.
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
func release(r *gitops.Repository, h holder, locks []lockFile) error {
	for waited := time.Duration(0); h.alive(); waited += 5 * time.Millisecond {
		if waited > patience {
			return fmt.Errorf("%w: update-ref of an interrupted landing, process %d", ErrUnsettled, h.PID)
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, l := range locks {
		if now, ok := identify(r, string(l.Path)); ok && now == l {
			if err := os.Remove(filepath.Join(r.CommonDir, string(l.Path))); err != nil {
				return err
			}
		}
	}
	return nil
}
