package execs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxContent bounds the size of a file whose digest is computed while a process waits.
	maxContent = 1 << 30
	// maxDigests bounds the digests that are kept.
	maxDigests = 4096
	// changedAgain is the age of the last change from which a digest is kept. The kernel's clock for times of files has steps of up to 10 ms, so
	// a file that has just changed can change again without another time.
	changedAgain = time.Second
	// contentBurst and contentRate bound the bytes of which digests are computed, at once and in a second. A digest takes the processor of the
	// host, to which no limit of the prison applies, and the agent chooses the files. Beyond the bounds, the calls of the prison wait.
	contentBurst = 1 << 30
	contentRate  = 128 << 20
	// contentPoll is how often a wait checks whether the process still waits for an answer.
	contentPoll = 20 * time.Millisecond
)

// contentID changes with the content of a file. Nobody inside can set the time of the last change (ctime). Only the pages of a file that
// somebody has mapped can change without it, until the kernel writes them. Rules do not stop a program that does that: it can as well run a
// copy with one more byte.
type contentID struct {
	device, inode uint64
	size          int64
	changed       int64 // ctime in nanoseconds
}

// digests computes digests of files inside, and keeps them. It belongs to one goroutine, which is locked to its thread.
type digests struct {
	known  map[contentID]string
	budget *budget
}

// of returns the digest of the file that a call executes, or an empty string if there is none, or if waits reports that the call does not wait
// for an answer any more. The path is resolved in the root folder of the process, so that no link leads out of it.
func (d *digests) of(thread int, folder string, c call, waits func() bool) string {
	fd := openInside(thread, folder, c.path)
	if fd < 0 {
		return ""
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxContent {
		return "" // it was opened as a path only, which does nothing to a device
	}
	id := contentID{st.Dev, st.Ino, st.Size, st.Ctim.Nano()}
	if sum, ok := d.known[id]; ok {
		return sum
	}
	f, err := os.Open("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return ""
	}
	defer f.Close()
	begun := time.Now()
	sum := d.compute(paced{io.LimitReader(f, maxContent), d.budget, waits})
	if sum == "" || begun.Sub(time.Unix(st.Ctim.Unix())) < changedAgain {
		return sum
	}
	if len(d.known) >= maxDigests {
		clear(d.known)
	}
	d.known[id] = sum
	return sum
}

// compute computes a digest at an ordinary priority. It returns an empty string if the content cannot be read.
func (d *digests) compute(content io.Reader) string {
	unix.Setpriority(unix.PRIO_PROCESS, 0, 0)              //nolint:errcheck // only root has another priority
	defer unix.Setpriority(unix.PRIO_PROCESS, 0, priority) //nolint:errcheck // see [recorder.listen]
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// budget bounds the bytes that are read in a time.
type budget struct {
	mu    sync.Mutex
	left  int64 // bytes that may be read at once
	since time.Time
}

// take takes a number of bytes out of the budget. If there are not as many, it returns how long they take to come, and takes nothing.
func (b *budget) take(n int64, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since.IsZero() {
		b.left = contentBurst
	} else if more := now.Sub(b.since); more > 0 {
		b.left = min(b.left+int64(more.Seconds()*contentRate), contentBurst)
	}
	b.since = now
	if b.left < n {
		return time.Duration(float64(n-b.left) / contentRate * float64(time.Second))
	}
	b.left -= n
	return 0
}

// paced reads within a budget, as long as waits returns true.
type paced struct {
	io.Reader
	budget *budget
	waits  func() bool
}

// errNoWait reports that nobody waits for what is read.
var errNoWait = errors.New("nobody waits for the content")

// Read implements [io.Reader].
func (p paced) Read(b []byte) (int, error) {
	for {
		wait := p.budget.take(int64(len(b)), time.Now())
		if wait == 0 {
			return p.Reader.Read(b)
		}
		if !p.waits() {
			return 0, errNoWait
		}
		time.Sleep(min(wait, contentPoll))
	}
}

// fileOf returns the path, without links, of the file that a call executes. It is the path that exe has in the record if the file is a program.
// It is empty if there is no file, or if this process may not follow the links.
func (p *procfs) fileOf(thread int, folder string, c call) string {
	fd := openInside(thread, folder, c.path)
	if fd < 0 {
		return ""
	}
	defer unix.Close(fd)
	return p.link("self/fd/", fd, "")
}

// openInside opens a file of a process as a path only. It returns -1 if there is none.
func openInside(thread int, folder, name string) int {
	process := "/proc/" + strconv.Itoa(thread)
	if number, ok := strings.CutPrefix(name, "/dev/fd/"); ok { // see pathAt
		number, rest, _ := strings.Cut(number, "/")
		base, err := unix.Open(process+"/fd/"+number, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1
		}
		if rest == "" {
			return base
		}
		target, err := os.Readlink(process + "/fd/" + number)
		unix.Close(base)
		if err != nil {
			return -1
		}
		folder, name = target, rest
	}
	if !path.IsAbs(name) {
		name = folder + "/" + name // ".." after a link leads to the parent of the link's target
	}
	root, err := unix.Open(process+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, strings.TrimPrefix(name, "/"), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1
	}
	return fd
}
