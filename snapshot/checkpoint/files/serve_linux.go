package files

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// keepFromSignals makes the saved uid of this process the real one, if they differ. A native prison runs this process with the uid of the
// agent as its effective uid only, so that the agent's processes cannot stop or kill it.
func keepFromSignals() error {
	if unix.Getuid() == unix.Geteuid() {
		return nil
	}
	return os.NewSyscallError("setresuid", syscall.Setresuid(-1, -1, unix.Getuid()))
}

// Serve answers the requests that it reads from in, for the folder at path, until in ends.
func Serve(path string, in io.Reader, out io.Writer) error {
	root, err := unix.Open(path, folderFlags, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	unix.Umask(0)
	s := &server{r: newReader(in), w: newWriter(out), open: []opened{{"", root}}, dated: map[uint64]bool{}}
	for {
		ask, err := s.r.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.closeTo(1)
		switch ask {
		case askWalk:
			s.walk(s.r.kind() == 1)
		case askList:
			s.listAll(s.r.kind() == 1)
		case askRead:
			s.readAll()
		case askApply:
			s.applyAll()
		default:
			return fmt.Errorf("request %q", ask)
		}
		s.w.kind(isEnd)
		if err := errors.Join(s.r.err, s.w.Flush()); err != nil {
			return err
		}
	}
}

// walk sends all files of the workspace: a folder before its entries, which are sorted by the bytes of their names.
func (s *server) walk(opens bool) {
	w := walk{server: s, opens: opens, opened: map[uint64]uint32{}}
	w.begin(s.open[0].fd, ".", w.entry(s.open[0].fd, ".", 0))
}

// begin walks through a folder as if it were the workspace. e describes the folder.
func (w *walk) begin(parent int, name string, e Entry) {
	e.Name = ""
	w.folder(parent, name, e, 0)
}

// listAll sends folders with their entries, each after isData. For a path that is not a folder it sends the reason.
func (s *server) listAll(deep bool) {
	w := walk{server: s, shallow: !deep}
	for s.r.kind() == isPath {
		path := s.r.text(longestPath)
		if s.r.err != nil {
			return
		}
		parent, name, err := s.place(path)
		if err != nil {
			s.w.kind(isError)
			s.w.text(reason(err))
			continue
		}
		// The file is examined only once, since a program inside can replace it at any time.
		e := w.entry(parent, name, 0)
		if e.Kind != Folder {
			s.w.kind(isError)
			s.w.text(cmp.Or(e.Error, reason(errChanged)))
			continue
		}
		s.w.kind(isData)
		w.begin(parent, name, e)
		s.w.kind(isSame)
	}
}

type walk struct {
	*server
	opens   bool              // open files that are closed to their owner
	shallow bool              // list only the entries of a folder
	opened  map[uint64]uint32 // the modes from before, by inode, of the regular files that this walk has opened
	names   []byte            // buffer of getdents64(2)
}

// entry describes a file in an open folder.
func (w *walk) entry(folder int, name string, depth int) Entry {
	e := Entry{Kind: Special, Name: name, Depth: depth}
	var st unix.Stat_t
	if err := unix.Fstatat(folder, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		e.Error = reason(err)
		return e
	}
	e.Stat, e.Mode, e.Links = statOf(&st), st.Mode&0o7777, uint64(st.Nlink) //nolint:unconvert // 32 bits on arm64
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		e.Kind = Folder
	case unix.S_IFREG:
		e.Kind = Regular
		w.openFile(folder, &e)
	case unix.S_IFLNK:
		e.Kind = Link
		target := make([]byte, longestTarget)
		n, err := unix.Readlinkat(folder, name, target)
		if err == nil && n == 0 {
			err = errChanged
		}
		if err != nil {
			e.Error = reason(err)
		} else {
			e.Target = string(target[:n])
		}
	}
	return e
}

// openFile gives the owner access to a regular file. If the file has other names, the walk finds the new mode there.
func (w *walk) openFile(folder int, e *Entry) {
	if before, ok := w.opened[e.Inode]; ok {
		e.Mode, e.Opened = before, true
	} else if w.opens && e.Mode&0o400 == 0 && grant(folder, e.Name, unix.S_IFREG, 0o400) == nil {
		e.Opened = true
		w.opened[e.Inode] = e.Mode
	}
}

// folder sends a folder, which e describes, and everything below it unless the walk is shallow.
func (w *walk) folder(parent int, name string, e Entry, depth int) {
	fail := func(err error) {
		e.Error = reason(err)
		w.send(e)
	}
	if depth > MaxDepth {
		fail(ErrTooDeep)
		return
	}
	const needs = 0o500
	if w.opens && e.Mode&needs != needs {
		e.Opened = grant(parent, name, unix.S_IFDIR, needs) == nil
	}
	fd, err := unix.Openat(parent, name, folderFlags, 0)
	if err != nil {
		fail(err)
		return
	}
	defer unix.Close(fd)
	names, err := w.list(fd)
	if err != nil {
		fail(err)
		return
	}
	w.send(e)
	for _, name := range names {
		child := w.entry(fd, name, depth+1)
		if child.Kind == Folder && child.Error == "" && !w.shallow {
			w.folder(fd, name, child, depth+1)
		} else {
			w.send(child)
		}
	}
}

func (w *walk) send(e Entry) {
	w.w.kind(isEntry)
	w.w.entry(e)
}

func (w *walk) list(fd int) ([]string, error) {
	if w.names == nil {
		w.names = make([]byte, 1<<16)
	}
	var names []string
	for {
		n, err := unix.ReadDirent(fd, w.names)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			slices.Sort(names)
			return names, nil
		}
		_, _, names = unix.ParseDirent(w.names[:n], -1, names)
	}
}

// readAll sends the contents of the regular files that a request names.
func (s *server) readAll() {
	buffer := make([]byte, 1<<18)
	for s.r.kind() == isPath {
		path := s.r.text(longestPath)
		if s.r.err != nil {
			return
		}
		if err := s.read(path, buffer); err != nil {
			s.w.kind(isError)
			s.w.text(reason(err))
		}
		if s.r.Buffered() == 0 { // no request follows yet, so the host may wait for the answer
			s.w.Flush() //nolint:errcheck // the writer keeps the error
		}
	}
}

// dates reports whether a file's ctime shows writes through a shared mapping, see [Content]. A file system in memory never changes it,
// and other file systems are not known.
func (s *server) dates(fd int, device uint64) bool {
	if known, ok := s.dated[device]; ok {
		return known
	}
	var st unix.Statfs_t
	err := unix.Fstatfs(fd, &st)
	s.dated[device] = err == nil && (st.Type == unix.EXT4_SUPER_MAGIC || st.Type == unix.XFS_SUPER_MAGIC || st.Type == unix.BTRFS_SUPER_MAGIC)
	return s.dated[device]
}

// read sends one file: as many bytes as the file had when it was opened, and then whether the file has changed.
func (s *server) read(path string, buffer []byte) error {
	folder, name, err := s.place(path)
	if err != nil {
		return err
	}
	fd, err := unix.Openat(folder, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var before, after unix.Stat_t
	if err := unix.Fstat(fd, &before); err != nil {
		return err
	}
	if before.Mode&unix.S_IFMT != unix.S_IFREG {
		return errChanged
	}
	attributes, err := unix.Flistxattr(fd, nil)
	if err != nil {
		attributes = 0 // the file system has no extended attributes
	}
	s.w.kind(isData)
	s.w.stat(statOf(&before))
	s.w.number(uint64(min(attributes, 1)))
	s.w.flag(s.dates(fd, before.Dev))
	whole := true
	for left := before.Size; left > 0; {
		part := buffer[:min(left, int64(len(buffer)))]
		n := 0
		if whole {
			n, err = unix.Read(fd, part)
			if errors.Is(err, unix.EINTR) {
				continue
			}
		}
		if whole = whole && err == nil && n > 0; !whole {
			clear(part) // bytes that cannot be read are sent as zeros, since their number was announced
			n = len(part)
		}
		if _, err := s.w.Write(part[:n]); err != nil { // the host reads no more
			return err
		}
		left -= int64(n)
	}
	if err := unix.Fstat(fd, &after); err != nil || !whole || statOf(&before) != statOf(&after) {
		s.w.kind(isOther)
	} else {
		s.w.kind(isSame)
	}
	return nil
}
