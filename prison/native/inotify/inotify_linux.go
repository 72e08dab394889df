package inotify

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds of the memory of a tree. An agent decides how many folders there are.
const (
	mostFolders = 100_000
	mostTouched = 20_000
)

// pause is the time between two readings of events while no caller waits for them.
const pause = 5 * time.Millisecond

const events = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_MODIFY | unix.IN_ATTRIB |
	unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW

// ErrLost reports that changes may have been missed.
var ErrLost = errors.New("changes may have been missed")

// Tree watches the folders below a folder.
type Tree struct {
	top string
	as  func(func()) // calls a function that opens files

	mu      sync.Mutex
	fd      int
	file    *os.File
	folders map[int32]*folder // by watch descriptor
	touched map[string]bool   // paths, from the top
	lost    error             // set when the watching has ended
}

// folder is a watched folder.
type folder struct {
	wd     int32
	name   string
	parent *folder
	below  map[string]*folder
}

func (f *folder) path() string {
	if f.parent == nil {
		return ""
	}
	return filepath.Join(f.parent.path(), f.name)
}

// Watch begins to watch the folders below top, which is an absolute path. It opens files in functions that as calls, which can change the
// rights of the thread.
func Watch(top string, as func(func())) (*Tree, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	t := &Tree{top: top, as: as, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), folders: map[int32]*folder{}, touched: map[string]bool{}}
	t.as(func() { t.add(nil, "") })
	if t.lost == nil && len(t.folders) == 0 {
		t.lose("there is no folder")
	}
	if t.lost != nil {
		return nil, t.lost
	}
	clear(t.touched) // before the first call of Touched, nothing has changed
	go t.readEvents()
	return t, nil
}

// Close ends the watching.
func (t *Tree) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lose("closed")
}

// lose ends the watching, and releases all watches.
func (t *Tree) lose(why string) {
	if t.lost == nil {
		t.lost = fmt.Errorf("%w: %s", ErrLost, why)
		t.fd = -1
		go t.file.Close() // Close waits for readEvents, which may wait for the lock that this goroutine holds
		t.folders, t.touched = nil, nil
	}
}

// Touched returns the folders whose modes, times or entries may have changed since the last call, as paths from the top. The result
// includes every change that a process has made before the call.
func (t *Tree) Touched() ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read()
	if t.lost != nil {
		return nil, t.lost
	}
	paths := slices.AppendSeq(make([]string, 0, len(t.touched)), maps.Keys(t.touched))
	clear(t.touched)
	slices.Sort(paths)
	return paths, nil
}

// readEvents reads events when they arrive, so that the kernel's queue does not overflow.
func (t *Tree) readEvents() {
	c, err := t.file.SyscallConn()
	if err != nil {
		return
	}
	c.Read(func(uintptr) bool { //nolint:errcheck // ends when the file is closed
		t.mu.Lock()
		defer t.mu.Unlock()
		t.read()
		if t.lost == nil {
			t.mu.Unlock()
			time.Sleep(pause)
			t.mu.Lock()
		}
		return t.lost != nil
	})
}

// read handles all events that the kernel has.
func (t *Tree) read() {
	buffer := make([]byte, 1<<16)
	for t.lost == nil {
		n, err := unix.Read(t.fd, buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EAGAIN) {
			return
		}
		if err != nil || n <= 0 {
			t.lose("no events can be read")
			return
		}
		t.as(func() { t.handle(buffer[:n]) })
	}
}

func (t *Tree) handle(batch []byte) {
	const head = unix.SizeofInotifyEvent
	for len(batch) >= head && t.lost == nil {
		e := *(*unix.InotifyEvent)(unsafe.Pointer(&batch[0]))
		end := min(len(batch), head+int(e.Len))
		name := unix.ByteSliceToString(batch[head:end])
		batch = batch[end:]
		if e.Mask&unix.IN_Q_OVERFLOW != 0 {
			t.lose("too many changes at once")
			return
		}
		if f := t.folders[e.Wd]; f != nil {
			t.event(f, e.Mask, name)
		}
	}
}

// event handles an event about the entry name of a folder, or about the folder itself if name is empty.
func (t *Tree) event(f *folder, mask uint32, name string) {
	if mask&unix.IN_IGNORED != 0 { // the folder was removed
		t.forget(f)
		return
	}
	t.touch(f.path())
	if name == "" || mask&unix.IN_ISDIR == 0 {
		return
	}
	below := f.below[name]
	switch {
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		t.drop(below)
		t.add(f, name)
	case mask&(unix.IN_MOVED_FROM|unix.IN_DELETE) != 0:
		t.drop(below)
	case below == nil: // the folder could not be read before
		t.add(f, name)
	}
}

func (t *Tree) touch(path string) {
	if t.lost == nil {
		t.touched[path] = true
	}
	if len(t.touched) > mostTouched {
		t.lose("too many folders have changed")
	}
}

// add watches a folder and all folders below it. A folder is watched before its entries are listed, so that no later change is missed.
func (t *Tree) add(parent *folder, name string) {
	f := &folder{name: name, parent: parent}
	path := filepath.Join(t.top, f.path())
	wd, err := unix.InotifyAddWatch(t.fd, path, events)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EACCES):
		return // an event follows when the path becomes a folder that can be read
	case err != nil:
		t.lose(fmt.Sprintf("watch a folder: %v", err))
		return
	case len(t.folders) >= mostFolders:
		t.lose("too many folders")
		return
	}
	f.wd = int32(wd)
	if other := t.folders[f.wd]; other != nil { // the folder was moved here, and events about the move follow
		t.forget(other)
	}
	t.folders[f.wd] = f
	if parent != nil {
		if parent.below == nil {
			parent.below = map[string]*folder{}
		}
		parent.below[name] = f
		t.touch(f.path())
	}
	subs, err := foldersIn(path)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP): // an event about the folder follows
	case err != nil:
		t.lose(fmt.Sprintf("list a folder: %v", err))
	}
	for _, sub := range subs {
		if t.lost != nil {
			return
		}
		t.add(f, sub)
	}
}

// foldersIn returns the names of the folders in a folder.
func foldersIn(path string) (names []string, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	d := os.NewFile(uintptr(fd), path)
	defer d.Close()
	entries, err := d.ReadDir(-1)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// drop ends the watching of a folder and everything below it.
func (t *Tree) drop(f *folder) {
	if f == nil || t.lost != nil {
		return
	}
	unix.InotifyRmWatch(t.fd, uint32(f.wd)) //nolint:errcheck // the folder may be removed, and the watch with it
	t.forget(f)
	for _, b := range f.below {
		t.drop(b)
	}
}

// forget removes a folder that is not watched any more.
func (t *Tree) forget(f *folder) {
	if t.folders[f.wd] == f {
		delete(t.folders, f.wd)
	}
	if f.parent != nil && f.parent.below[f.name] == f {
		delete(f.parent.below, f.name)
	}
}
