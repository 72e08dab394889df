package files

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// server serves requests about one folder.
type server struct {
	r       *reader
	w       writer
	open    []opened        // the workspace, and the folders on the way to the folder that was used last
	counter int             // makes temporary names unique
	dated   map[uint64]bool // by device, whether ctime shows writes through a mapping
}

// opened is an open folder.
type opened struct {
	name string
	fd   int
}

const folderFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK

// folder returns the descriptor of a folder, which stays open until another folder is used. It uses those folders on the way again that
// are open already.
func (s *server) folder(path string) (int, error) {
	var names []string
	if path != "" {
		names = strings.Split(path, "/")
	}
	if len(names) > MaxDepth {
		return -1, ErrTooDeep
	}
	same := 0
	for same < len(names) && same+1 < len(s.open) && s.open[same+1].name == names[same] {
		same++
	}
	s.closeTo(same + 1)
	for _, name := range names[same:] {
		if err := CheckName(name); err != nil {
			return -1, err
		}
		fd, err := unix.Openat(s.open[len(s.open)-1].fd, name, folderFlags, 0)
		if err != nil {
			return -1, err
		}
		s.open = append(s.open, opened{name, fd})
	}
	return s.open[len(s.open)-1].fd, nil
}

func (s *server) closeTo(n int) {
	for _, f := range s.open[n:] {
		unix.Close(f.fd)
	}
	s.open = s.open[:n]
}

// place returns the open folder that contains the file of a path, and the file's name. The workspace itself has the name ".".
func (s *server) place(path string) (folder int, name string, err error) {
	if path == "" {
		return s.open[0].fd, ".", nil
	}
	end := strings.LastIndexByte(path, '/')
	name = path[end+1:]
	if err := CheckName(name); err != nil {
		return -1, "", err
	}
	folder, err = s.folder(path[:max(end, 0)])
	return folder, name, err
}

// grant gives the owner permissions for a file, if the file still is of the kind.
func grant(folder int, name string, kind, bits uint32) error {
	return ofKind(folder, name, kind, func(file string, mode uint32) error { return unix.Chmod(file, mode|bits) })
}

// ofKind passes a path of a file and its mode to change, if the file still is of the kind. The path leads to this file even if another one
// takes its name.
func ofKind(folder int, name string, kind uint32, change func(file string, mode uint32) error) error {
	fd, err := unix.Openat(folder, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != kind {
		return errChanged
	}
	return change("/proc/self/fd/"+strconv.Itoa(fd), st.Mode&0o7777)
}

var errChanged = errors.New("it changed meanwhile")

// statOf converts a struct stat.
func statOf(st *unix.Stat_t) Stat {
	return Stat{Device: st.Dev, Inode: st.Ino, Size: st.Size, Mtime: Time(st.Mtim), Ctime: Time(st.Ctim)}
}

// reason returns the text of an error without a path.
func reason(err error) string {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		err = path.Err
	}
	return err.Error()
}
