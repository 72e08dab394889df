package promote

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
)

const (
	// maxInodes is how many files and folders a workspace may have, however small.
	maxInodes = 5_000_000
	// freeFloor is how many bytes of the file system stay free, or a twentieth of it, or half of what was free at first.
	freeFloor = 1 << 30
	// measureEvery is how often a workspace is measured at the most while something changes on its file system, and
	// measureShare how many times longer the pause is than the walk was, openShare than its exporter took to begin.
	measureEvery = 5 * time.Second
	measureShare = 200
	openShare    = 20
	// heldShare is by how much shorter the pause is while the workspace is held to be full.
	heldShare = 20
	// grace is by how much a workspace may outgrow what it was stopped at, when it is started again to be cleaned up.
	grace = 64 << 20
)

// room is what a file system has.
type room struct{ used, free, total, inodesUsed, inodesFree, inodes int64 }

func roomAt(path string) (room, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return room{}, err
	}
	size := int64(s.Bsize) //nolint:unconvert // the types differ between systems
	return room{used: int64(s.Blocks-s.Bfree) * size, free: int64(s.Bavail) * size, total: int64(s.Blocks) * size,
		inodesUsed: int64(s.Files - s.Ffree), inodesFree: int64(s.Ffree), inodes: int64(s.Files)}, nil
}

// crowded tells whether there is room for a few more files only.
func (r room) crowded() bool { return r.inodes > 0 && r.inodesFree < r.inodes/100 }

// crowded is the hold of a disk that takes no more files: nobody may have been able to write it down.
func (e *Engine) crowded(holds []Hold) *Hold {
	place := e.Store.Workspace(e.Record)
	r, err := roomAt(place)
	if err != nil || !r.crowded() || slices.ContainsFunc(holds, func(h Hold) bool { return h.Reason == WorkspaceFull }) {
		return nil
	}
	return &Hold{Reason: WorkspaceFull, Message: fmt.Sprintf("the disk has room for %d more files; the prison is not left running", r.inodesFree),
		Next: []string{"df -i " + gitops.Pasteable(place), "git airlock start"}}
}

// watchdog stops the prison before what is in its workspace fills the disk. Measuring a workspace takes a walk
// through it, asking the file system what it has left takes nothing: the first is done now and then if the second says that
// anything has changed, and at once if it says that much has. Neither waits for a cycle or for the other: an agent says how
// long a cycle takes and a walk, and when there is a cycle.
type watchdog struct {
	*Engine  // what its user has filled in, no more: the rest is the cycles'
	log      *log.Logger
	place    string
	news     chan struct{} // sent to when there is something new to be said
	known    shared
	walk     <-chan walked // where the result of a walk comes; nil while there is none
	floor    int64         // bytes that stay free
	beside   []disk        // others than the workspace's that the agent's doings end on
	failure  string        // of the last walk, said once
	usage    gitops.Usage
	measured time.Time
	pause    time.Duration // until it is measured again
	then     room          // when it was measured, or at the beginning
	excused  gitops.Usage  // what there was when the prison was stopped
	// taken is what the quarantine holds: what is committed, taken out and taken back comes to more than the workspace has.
	// excusedTaken is how much that was when the prison was stopped.
	taken, excusedTaken int64
}

// disk is a file system of which some bytes stay free.
type disk struct {
	place string // a folder on it
	whose string // what it is the disk of
	floor int64
}

// shared is what watchdog and cycles tell each other.
type shared struct {
	sync.Mutex
	limit int64 // airlock.maxWorkspace, 0 as long as no cycle could read it
	full  *Hold
}

// walked is what a walk through the workspace found.
type walked struct {
	usage gitops.Usage
	taken int64
	then  room          // when it began
	pause time.Duration // that it asks for
	err   error
}

func newWatchdog(e *Engine, logger *log.Logger) *watchdog {
	w := &watchdog{Engine: e, log: logger, place: e.Store.Workspace(e.Record), measured: time.Now(), news: make(chan struct{}, 1)}
	if r, err := roomAt(w.place); err == nil {
		w.then, w.floor = r, r.floor()
	}
	if e.HomeDisk != nil {
		w.lookAfter(e.HomeDisk(), "the agent's home")
	}
	w.lookAfter(w.Dir(), "the repository")
	return w
}

// lookAfter adds the disk that a folder is on, if that can be asked and is another one than those before.
func (w *watchdog) lookAfter(place, whose string) {
	r, err := roomAt(place)
	same := func(d disk) bool { return sameDisk(place, d.place) }
	if err != nil || sameDisk(place, w.place) || slices.ContainsFunc(w.beside, same) {
		return
	}
	w.beside = append(w.beside, disk{place, whose, r.floor()})
	w.then = w.then.with(r)
}

// floor is how much of a disk stays free of which this is the room at first.
func (r room) floor() int64 { return min(freeFloor, r.total/20, r.free/2) }

// with adds what is used of another disk. What is free stays that of the first.
func (r room) with(beside room) room {
	r.used, r.inodesUsed = r.used+beside.used, r.inodesUsed+beside.inodesUsed
	return r
}

func sameDisk(a, b string) bool {
	var first, second unix.Stat_t
	return unix.Stat(a, &first) == nil && unix.Stat(b, &second) == nil && first.Dev == second.Dev
}

// fullBeside says which of the other disks is, and where that is; nothing if none is.
func (w *watchdog) fullBeside(rooms []room) (why, place string) {
	for i, d := range w.beside {
		switch r := rooms[i]; {
		case r.free < d.floor:
			return fmt.Sprintf("the disk of %s has %s left", d.whose, megabytes(r.free)), d.place
		case r.crowded():
			return fmt.Sprintf("the disk of %s has room for %d more files", d.whose, r.inodesFree), d.place
		}
	}
	return "", ""
}

// allow tells the watchdog what the user's settings are now.
func (w *watchdog) allow(limit int64) {
	w.known.Lock()
	defer w.known.Unlock()
	w.known.limit = limit
}

// hold is what the watchdog has stopped the prison for, nil if it has not.
func (w *watchdog) hold() *Hold {
	w.known.Lock()
	defer w.known.Unlock()
	return w.known.full
}

// say sets the hold, and wakes who tells of it.
func (w *watchdog) say(h *Hold) {
	w.known.Lock()
	before := w.known.full
	w.known.full = h
	w.known.Unlock()
	if (before == nil) == (h == nil) {
		return
	}
	select {
	case w.news <- struct{}{}:
	default: // one is waiting
	}
}

func (w *watchdog) limit() int64 {
	w.known.Lock()
	defer w.known.Unlock()
	return w.known.limit
}

// look stops the prison if it must be.
func (w *watchdog) look(ctx context.Context) {
	r, err := roomAt(w.place)
	if err != nil || w.Halt == nil {
		return
	}
	rooms := make([]room, len(w.beside))
	for i, d := range w.beside {
		if rooms[i], err = roomAt(d.place); err != nil {
			rooms[i] = room{free: math.MaxInt64} // it is no disk of the prison's any more
		}
		r = r.with(rooms[i])
	}
	w.measure(ctx, r)
	besides, place := w.fullBeside(rooms)
	why, full := cmp.Or(w.verdict(r), besides), w.hold()
	switch {
	case why == "":
		w.excused, w.excusedTaken = gitops.Usage{}, 0
		w.say(nil)
		return
	case full != nil && w.usage.Bytes <= w.excused.Bytes+grace && w.taken <= w.excusedTaken+grace && r.free >= w.floor && besides == "":
		return // said before; started again, the agent may clean up
	}
	w.log.Print(why)
	if err := w.Halt(ctx); err != nil {
		w.log.Printf("stop the prison: %v", err)
		return
	}
	w.excused, w.excusedTaken = w.usage, w.taken
	w.say(&Hold{Reason: WorkspaceFull, Message: why + "; the prison was stopped", Next: []string{w.mend(r, place), "git airlock start"}})
}

// mend is what to type against what the prison was stopped for; beside is where another disk is full.
func (w *watchdog) mend(r room, beside string) string {
	switch most, limit := max(w.usage.Bytes, w.taken), w.limit(); {
	case limit > 0 && most > limit:
		return "git config airlock.maxWorkspace " + sizeAbove(most)
	case r.crowded():
		return "df -i " + gitops.Pasteable(w.place)
	case w.verdict(r) == "":
		return "df -h " + gitops.Pasteable(beside)
	}
	return "df -h " + gitops.Pasteable(w.place)
}

// sizeAbove is a setting that would do for a workspace: twice its size, in whole gigabytes.
func sizeAbove(bytes int64) string { return fmt.Sprintf("%dg", 2*(bytes>>30+1)) }

// due tells whether the workspace may be larger by now than it may be.
func (w *watchdog) due(r room) bool {
	grown, more := max(0, r.used-w.then.used), max(0, r.inodesUsed-w.then.inodesUsed)
	if r == w.then {
		return false
	}
	limit, full := w.limit(), w.hold() != nil
	much := limit > 0 && max(w.usage.Bytes, w.taken)+grown > limit || w.usage.Inodes+more > maxInodes
	pause := w.pause
	if full {
		pause /= heldShare // somebody waits for it to be over
	}
	return much && !full || time.Since(w.measured) > max(pause, measureEvery)
}

// measure begins a walk that is due, unless one is under way.
func (w *watchdog) measure(ctx context.Context, r room) {
	if w.walk != nil || !w.due(r) {
		return
	}
	walk := make(chan walked, 1)
	go func() { walk <- w.walkThrough(ctx, r) }()
	w.walk = walk
}

// walkThrough measures the workspace, with an exporter of its own.
func (w *watchdog) walkThrough(ctx context.Context, r room) walked {
	found := walked{taken: gitops.OpenQuarantine(QuarantineDir(w.Dir()), w.Record.Format).Size(), then: r}
	begun := time.Now()
	exporter, err := w.Open(ctx)
	if err == nil {
		found.usage, err = exporter.Usage(ctx)
		_ = exporter.Close()
	}
	found.pause = openShare*(time.Since(begun)-found.usage.Took) + measureShare*found.usage.Took
	found.err = err
	return found
}

// learn takes what a walk has found.
func (w *watchdog) learn(ctx context.Context, found walked) {
	w.walk, w.taken, w.measured = nil, found.taken, time.Now()
	if ctx.Err() != nil {
		return
	}
	failure := ""
	if found.err != nil {
		failure, found.pause = found.err.Error(), w.pause
	}
	if failure != w.failure && failure != "" {
		w.log.Printf("measure the workspace: %v", failure)
	}
	w.failure = failure
	if !found.usage.Whole {
		// What hides, or keeps from being measured, cannot be more than the disks have grown by.
		found.usage.Bytes = max(found.usage.Bytes, w.usage.Bytes+found.then.used-w.then.used)
		found.usage.Inodes = max(found.usage.Inodes, w.usage.Inodes+found.then.inodesUsed-w.then.inodesUsed)
	}
	w.usage, w.then, w.pause = found.usage, found.then, found.pause
}

// verdict says why the prison must be stopped; empty if it need not be.
func (w *watchdog) verdict(r room) string {
	limit := w.limit()
	if limit == 0 {
		limit = math.MaxInt64
	}
	switch {
	case r.free < w.floor:
		return fmt.Sprintf("the disk has %s left", megabytes(r.free))
	case r.crowded():
		return fmt.Sprintf("the disk has room for %d more files", r.inodesFree)
	case w.usage.Bytes > limit && w.usage.Beside > w.usage.Bytes/2:
		return fmt.Sprintf("the agent's home and the workspace hold %s, more than airlock.maxWorkspace allows (%s)", megabytes(w.usage.Bytes), megabytes(limit))
	case w.usage.Bytes > limit:
		return fmt.Sprintf("the workspace holds %s, more than airlock.maxWorkspace allows (%s)", megabytes(w.usage.Bytes), megabytes(limit))
	case w.taken > limit:
		return fmt.Sprintf("what was taken out of the workspace holds %s, more than airlock.maxWorkspace allows (%s)", megabytes(w.taken), megabytes(limit))
	case w.usage.Inodes > maxInodes:
		return fmt.Sprintf("the workspace holds %d files and folders, more than %d", w.usage.Inodes, maxInodes)
	}
	return ""
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n>>20) }

// carried are the holds that a cycle leaves as they are: what the watchdog found is known to the daemon, and
// to others from the last cycle.
func (c *cycle) carried() []Hold {
	if c.dog != nil {
		if full := c.dog.hold(); full != nil {
			return []Hold{*full}
		}
		return nil
	}
	var holds []Hold
	for _, h := range c.outcome.Holds {
		if h.Reason == WorkspaceFull {
			holds = append(holds, h)
		}
	}
	return holds
}
