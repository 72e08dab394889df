package promote

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"slices"
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
	// measureShare how many times longer the pause is than the measuring was.
	measureEvery = 5 * time.Second
	measureShare = 200
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
// anything has changed, and at once if it says that much has.
type watchdog struct {
	*Engine
	log   *log.Logger
	place string
	floor int64 // bytes that stay free
	// beside is the host state, where the agent's home is, if that is on another disk; "": it is not.
	beside      string
	besideFloor int64

	usage    gitops.Usage
	measured time.Time
	pause    time.Duration // until it is measured again
	then     room          // when it was measured, or at the beginning
	excused  gitops.Usage  // what there was when the prison was stopped
	// taken is what the quarantine holds: what is committed, taken out and taken back comes to more than the workspace has.
	// excusedTaken is how much that was when the prison was stopped.
	taken, excusedTaken int64
}

func newWatchdog(e *Engine, logger *log.Logger) *watchdog {
	w := &watchdog{Engine: e, log: logger, place: e.Store.Workspace(e.Record), measured: time.Now()}
	if r, err := roomAt(w.place); err == nil {
		w.then, w.floor = r, r.floor()
	}
	if r, err := roomAt(w.Dir()); err == nil && !sameDisk(w.place, w.Dir()) {
		w.beside, w.besideFloor = w.Dir(), r.floor()
		w.then = w.then.with(r)
	}
	return w
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

// besideFull says that the disk of the home is, or nothing.
func (w *watchdog) besideFull(r room) string {
	switch {
	case w.beside == "":
		return ""
	case r.free < w.besideFloor:
		return fmt.Sprintf("the disk of the agent's home has %s left", megabytes(r.free))
	case r.crowded():
		return fmt.Sprintf("the disk of the agent's home has room for %d more files", r.inodesFree)
	}
	return ""
}

// look stops the prison if it must be, and tells whether there is something new to be said: the engine's hold was
// set or taken back.
func (w *watchdog) look(ctx context.Context) bool {
	r, err := roomAt(w.place)
	if err != nil || w.Halt == nil || w.settings.MaxWorkspace == 0 {
		return false
	}
	var beside room
	if w.beside != "" {
		if beside, err = roomAt(w.beside); err != nil {
			return false
		}
		r = r.with(beside)
	}
	if w.due(r) {
		w.measure(ctx, r)
	}
	why := cmp.Or(w.verdict(r), w.besideFull(beside))
	switch {
	case why == "":
		mended := w.full != nil
		w.full, w.excused, w.excusedTaken = nil, gitops.Usage{}, 0
		return mended
	case w.full != nil && w.usage.Bytes <= w.excused.Bytes+grace && w.taken <= w.excusedTaken+grace && r.free >= w.floor && w.besideFull(beside) == "":
		return false // said before; started again, the agent may clean up
	}
	w.log.Print(why)
	if err := w.Halt(ctx); err != nil {
		w.log.Printf("stop the prison: %v", err)
		return false
	}
	said := w.full != nil
	w.excused, w.excusedTaken = w.usage, w.taken
	mend := "df -h " + gitops.Pasteable(w.place)
	if w.verdict(r) == "" {
		mend = "df -h " + gitops.Pasteable(w.beside)
	}
	if r.crowded() {
		mend = "df -i " + gitops.Pasteable(w.place)
	}
	if most := max(w.usage.Bytes, w.taken); most > w.settings.MaxWorkspace {
		mend = "git config airlock.maxWorkspace " + sizeAbove(most)
	}
	w.full = &Hold{Reason: WorkspaceFull, Message: why + "; the prison was stopped", Next: []string{mend, "git airlock start"}}
	return !said
}

// sizeAbove is a setting that would do for a workspace: twice its size, in whole gigabytes.
func sizeAbove(bytes int64) string { return fmt.Sprintf("%dg", 2*(bytes>>30+1)) }

// due tells whether the workspace may be larger by now than it may be.
func (w *watchdog) due(r room) bool {
	grown, more := max(0, r.used-w.then.used), max(0, r.inodesUsed-w.then.inodesUsed)
	if r == w.then {
		return false
	}
	much := max(w.usage.Bytes, w.taken)+grown > w.settings.MaxWorkspace || w.usage.Inodes+more > maxInodes
	pause := w.pause
	if w.full != nil {
		pause /= heldShare // somebody waits for it to be over
	}
	return much && w.full == nil || time.Since(w.measured) > max(pause, measureEvery)
}

func (w *watchdog) measure(ctx context.Context, r room) {
	begun := time.Now()
	w.taken = gitops.OpenQuarantine(QuarantineDir(w.Dir()), w.Record.Format).Size()
	exporter, err := w.open(ctx)
	if err == nil {
		var usage gitops.Usage
		if usage, err = exporter.Usage(ctx); err == nil {
			if !usage.Whole {
				// What hides cannot be more than the whole disk has grown by.
				usage.Bytes = max(usage.Bytes, w.usage.Bytes+r.used-w.then.used)
				usage.Inodes = max(usage.Inodes, w.usage.Inodes+r.inodesUsed-w.then.inodesUsed)
			}
			w.usage, w.measured, w.then = usage, time.Now(), r
			w.pause = measureShare * time.Since(begun)
			return
		}
	}
	if ctx.Err() == nil {
		w.log.Printf("measure the workspace: %v", err)
	}
	w.measured, w.then = time.Now(), r // not at once again
}

// verdict says why the prison must be stopped; empty if it need not be.
func (w *watchdog) verdict(r room) string {
	limit := w.settings.MaxWorkspace
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
	if c.watched {
		if c.full == nil {
			return nil
		}
		return []Hold{*c.full}
	}
	var holds []Hold
	for _, h := range c.outcome.Holds {
		if h.Reason == WorkspaceFull {
			holds = append(holds, h)
		}
	}
	return holds
}
