package execs

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxContent bounds the size of a file whose digest is computed while a process waits.
	maxContent = 1 << 30
	// maxDigests bounds the digests that are kept.
	maxDigests = 4096
)

// contentID changes with the content of a file. Nobody inside can set the time of the last change (ctime).
type contentID struct {
	device, inode uint64
	size          int64
	changed       int64 // ctime in nanoseconds
}

// digests computes digests of files inside, and keeps them. It belongs to one goroutine.
type digests struct{ known map[contentID]string }

// of returns the digest of the file that a call executes, or an empty string if there is none. The path is resolved in the root folder of
// the process, so that no link leads out of it.
func (d *digests) of(thread int, folder string, c call) string {
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
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxContent)); err != nil {
		return ""
	}
	if len(d.known) >= maxDigests {
		clear(d.known)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	d.known[id] = sum
	return sum
}

// fileOf returns the path, without links, of the file that a call executes. It is the path that exe has in the record if the file is a program.
// It is empty if there is no file, or if this process may not follow the links.
func (p *procfs) fileOf(thread int, folder string, c call) string {
	fd := openInside(thread, folder, c.path)
	if fd < 0 {
		return ""
	}
	defer unix.Close(fd)
	return p.linkAt("self/fd/", fd, "")
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
