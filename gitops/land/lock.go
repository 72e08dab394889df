package land

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/procstat"
)

// token is the content of our lock on an index.
type token struct {
	text   string
	placed string // a file with this content that becomes the lock
}

func ownToken(dir string) (token, error) {
	text, err := gitops.Token(dir)
	return token{text, gitops.TokenPath(dir) + ".new"}, err
}

// write writes the file that becomes the lock of an index. A power failure must not leave the name without the content.
func (t token) write() error {
	return errors.Join(os.WriteFile(t.placed, []byte(t.text), 0o600), durable.SyncPath(t.placed))
}

// lock takes the lock of an index as git does. The written file is linked into place, so that it has its content from
// the first instant. Where the file system has no hard links, a crash in between leaves an empty lock that proves
// nothing, and the user is told about it as about the lock of any command.
//
// free is called immediately before and after. If it returns an error, lock returns this error and takes no lock.
func (t token) lock(name string, free func() error) error {
	err := free()
	if err == nil {
		err = t.place(name)
	}
	_ = os.Remove(t.placed) // after a failure, sweep removes it with the other prepared files
	if err != nil {
		return err
	}
	// What has begun in between has not got far, and fails at once if it needs the lock now.
	if err = free(); err != nil {
		t.unlock(name)
	}
	return err
}

// place links the written lock to its name, or writes it where the file system has no hard links.
func (t token) place(name string) error {
	err := os.Link(t.placed, name)
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
		_ = os.Remove(name) // created above, and useless without its content
	}
	return err
}

// owns reports whether the lock exists and is ours.
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

// lockFile identifies a lock that git holds on a ref, and distinguishes it from a later lock of the same name.
type lockFile struct {
	Path  gitops.AnyName `json:"path"` // relative to the repository's git directory, which may be moved
	Inode uint64         `json:"inode"`
	Time  int64          `json:"time"` // of the last change, in nanoseconds
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

// refLocks returns the lock files of a prepared transaction: those of its refs, HEAD and packed-refs.
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

// holder identifies a process, and distinguishes it from a later one with the same pid.
type holder struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // boot and start time, where /proc exists
}

func holderOf(pid int) holder { return holder{pid, startOf(pid)} }

// startOf returns the start time of a process, empty if the process is dead or there is no /proc.
func startOf(pid int) string {
	fields, _ := procstat.Fields(pid)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot)) + " " + fields[19]
}

// alive reports whether the process may still run.
func (h holder) alive() bool {
	if h.PID <= 0 || errors.Is(syscall.Kill(h.PID, 0), syscall.ESRCH) {
		return false
	}
	return h.Start == "" || startOf(h.PID) == h.Start
}

// patience is how long recovery waits for a git process that outlived us. Such a process ends when it sees the end
// of its input.
const patience = 5 * time.Second

// release waits until the git process that held the refs in a landing has released them. It removes the locks of
// that process if the process died without doing so (by a power failure, or killed by its pid).
func release(r *gitops.Repository, h holder, locks []lockFile) error {
	for waited := time.Duration(0); h.alive(); waited += 5 * time.Millisecond {
		if waited > patience {
			return fmt.Errorf("%w: update-ref of an interrupted landing, process %d", ErrUnfinished, h.PID)
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
