package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// applyAll does the operations in the order of the request, and reports those that fail.
func (s *server) applyAll() {
	for n := uint64(0); s.r.kind() == isPath; n++ {
		o := s.r.operation()
		if s.r.err != nil {
			return
		}
		content := &io.LimitedReader{R: s.r, N: o.Size}
		err := s.apply(o, content)
		if _, dropped := io.Copy(io.Discard, content); dropped != nil {
			s.r.fail(dropped)
		}
		if err != nil {
			s.w.kind(isError)
			s.w.number(n)
			s.w.text(reason(err))
		}
	}
}

func (s *server) apply(o Operation, content io.Reader) error {
	if o.Action == Set {
		return s.set(o)
	}
	if o.Path == "" {
		return unix.EINVAL
	}
	folder, name, err := s.writable(o.Path)
	if err != nil {
		return err
	}
	switch o.Action {
	case Remove, RemoveFolder:
		flags := 0
		if o.Action == RemoveFolder {
			flags = unix.AT_REMOVEDIR
		}
		if err := unix.Unlinkat(folder, name, flags); !errors.Is(err, unix.ENOENT) {
			return err
		}
		return nil
	case MakeFolder:
		return unix.Mkdirat(folder, name, 0o700)
	case MakeLink:
		return s.swapIn(folder, name, func(temporary string) error { return s.makeLink(folder, temporary, o) })
	case Write:
		return s.swapIn(folder, name, func(temporary string) error { return s.writeFile(folder, temporary, o, content) })
	}
	return unix.EINVAL
}

// writable returns the open folder of a path, in which this process may then change names. It gives the owner all permissions for that
// folder, and for closed folders on the way. Later operations set the modes of these folders.
func (s *server) writable(path string) (folder int, name string, err error) {
	folder, name, err = s.place(path)
	for tries := 0; errors.Is(err, unix.EACCES) && tries <= MaxDepth; tries++ {
		// the folder that could not be opened follows the last open one
		at := len(s.open) - 1
		closed := nthName(path, at)
		if err := s.ownAll(s.open[at].fd, "."); err != nil {
			return -1, "", err
		}
		if err := s.ownAll(s.open[at].fd, closed); err != nil {
			return -1, "", err
		}
		folder, name, err = s.place(path)
	}
	if err != nil {
		return -1, "", err
	}
	return folder, name, s.ownAll(folder, ".")
}

// ownAll gives the owner all permissions for a folder.
func (s *server) ownAll(folder int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(folder, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&0o700 == 0o700 {
		return nil
	}
	if name == "." {
		return unix.Fchmod(folder, st.Mode&0o7777|0o700)
	}
	return grant(folder, name, unix.S_IFDIR, 0o700)
}

// nthName returns the nth name of a path.
func nthName(path string, n int) string {
	for range n {
		_, path, _ = strings.Cut(path, "/")
	}
	name, _, _ := strings.Cut(path, "/")
	return name
}

// swapIn makes a file under a temporary name and renames it, so that a file with the final name is always complete.
func (s *server) swapIn(folder int, name string, write func(temporary string) error) error {
	for {
		s.counter++
		temporary := ".restore-" + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(s.counter)
		err := write(temporary)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err == nil {
			err = unix.Renameat(folder, temporary, folder, name)
		}
		if err != nil {
			unix.Unlinkat(folder, temporary, 0) //nolint:errcheck // the first error is returned
		}
		return err
	}
}

func (s *server) makeLink(folder int, name string, o Operation) error {
	if err := unix.Symlinkat(o.Target, folder, name); err != nil {
		return err
	}
	return setTime(folder, name, o.Mtime)
}

func (s *server) writeFile(folder int, name string, o Operation, content io.Reader) error {
	fd, err := unix.Openat(folder, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if n, err := io.Copy(f, content); err != nil || n != o.Size {
		return errors.Join(err, fmt.Errorf("%d bytes of %d", n, o.Size))
	}
	if err := unix.Fchmod(fd, o.Mode); err != nil {
		return err
	}
	return setTime(folder, name, o.Mtime)
}

func setTime(folder int, name string, mtime Time) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.Timespec(mtime)}
	return unix.UtimesNanoAt(folder, name, times, unix.AT_SYMLINK_NOFOLLOW)
}

// set sets mode and time of a file, if the file has the expected kind.
func (s *server) set(o Operation) error {
	folder, name := s.open[0].fd, "."
	if o.Path != "" {
		var err error
		// This changes nothing in the file's folder. So a folder that is closed to writes stays closed.
		if folder, name, err = s.place(o.Path); errors.Is(err, unix.EACCES) {
			folder, name, err = s.writable(o.Path)
		}
		if err != nil {
			return err
		}
	}
	kinds := map[Kind]uint32{Folder: unix.S_IFDIR, Regular: unix.S_IFREG, Link: unix.S_IFLNK}
	err := ofKind(folder, name, kinds[o.Kind], func(file string, mode uint32) error {
		if o.Kind == Link || mode == o.Mode {
			return nil
		}
		return unix.Chmod(file, o.Mode)
	})
	if err != nil {
		return err
	}
	return setTime(folder, name, o.Mtime)
}
