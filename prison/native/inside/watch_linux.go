package inside

import (
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

const (
	watchPoll = time.Second
	// Changes that follow within this time after a change are reported together.
	watchCoalesce = 5 * time.Millisecond

	watchEvents = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_MODIFY |
		unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_DONT_FOLLOW
)

// watcher watches a few paths.
type watcher struct {
	agent phantom
	paths []string
	seen  []pathState
	// the descriptor of inotify(7), or -1 when the user has no inotify instance left, so that only the poll works
	fd      int
	watched map[int32]bool // by watch descriptor: true for one of the paths, false for a folder above one
}

// pathState is the state of a path at a check. It is zero if the path does not exist.
type pathState struct {
	ino          uint64
	size         int64
	mtime, ctime unix.Timespec
}

// watch sends one byte for each change until the caller disconnects.
func watch(c wire.Conn, agent phantom, paths []string) {
	w := &watcher{agent: agent, paths: paths, fd: -1}
	events := make(chan []byte)
	gone := c.Gone()
	if fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err == nil {
		w.fd = fd // for adding watches: os.File.Fd would make the descriptor blocking
		inotify := os.NewFile(uintptr(fd), "inotify")
		defer inotify.Close()
		go readEvents(inotify, events, gone)
	}
	w.check()
	if c.Send(wire.Reply{}) != nil {
		return
	}
	tick := time.NewTicker(watchPoll)
	defer tick.Stop()
	for {
		tell := false
		select {
		case <-gone:
			return
		case batch := <-events:
			tell = w.concerns(batch)
			time.Sleep(watchCoalesce)
		case <-tick.C:
		}
		if w.check() || tell {
			if _, err := c.Write([]byte{0}); err != nil {
				return
			}
		}
	}
}

// check renews the watches as the agent, and reports whether a path differs from its last known state.
func (w *watcher) check() (changed bool) {
	w.agent.do(func() {
		w.rearm()
		changed = w.changed()
	})
	return changed
}

// readEvents sends the events that it reads, in batches, to the channel.
func readEvents(inotify *os.File, events chan<- []byte, gone <-chan bool) {
	for {
		buf := make([]byte, 4096)
		n, err := inotify.Read(buf)
		if err != nil || n <= 0 {
			return
		}
		select {
		case events <- buf[:n]:
		case <-gone:
			return
		}
	}
}

// concerns reports whether an event concerns one of the paths itself, or whether events were lost.
func (w *watcher) concerns(buf []byte) bool {
	const head = unix.SizeofInotifyEvent
	for len(buf) >= head {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[0]))
		if ours, known := w.watched[e.Wd]; ours || !known {
			return true
		}
		buf = buf[min(len(buf), head+int(e.Len)):]
	}
	return false
}

// rearm watches every path, or the nearest existing folder above it. Adding an existing watch changes nothing
// (inotify_add_watch(2)).
func (w *watcher) rearm() {
	if w.fd < 0 {
		return
	}
	watched := map[int32]bool{}
	for _, path := range w.paths {
		for p, ours := path, true; ; p, ours = filepath.Dir(p), false {
			wd, err := unix.InotifyAddWatch(w.fd, p, watchEvents)
			if err == nil {
				watched[int32(wd)] = watched[int32(wd)] || ours
			}
			if err == nil || p == "/" || p == "." {
				break
			}
		}
	}
	for wd := range w.watched {
		if _, still := watched[wd]; !still {
			// the folder may have been removed, and the watch with it
			unix.InotifyRmWatch(w.fd, uint32(wd)) //nolint:errcheck
		}
	}
	w.watched = watched
}

// changed reports whether a path differs from its last known state, and updates the states.
func (w *watcher) changed() bool {
	now := make([]pathState, len(w.paths))
	for i, path := range w.paths {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil {
			now[i] = pathState{st.Ino, st.Size, st.Mtim, st.Ctim}
		}
	}
	changed := false
	for i := range w.seen {
		changed = changed || now[i] != w.seen[i]
	}
	w.seen = now
	return changed
}
