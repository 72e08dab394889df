package watch

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// interval is the pause between two checks of the file systems.
	interval = time.Second
	// maxInodes is how many files and folders a workspace may have, however small.
	maxInodes = 5_000_000
	// walkEvery is the shortest pause between two walks while something changes on the file system. walkShare is how
	// many times longer the pause is than the walk was, openShare than the prison for it took to begin.
	walkEvery = 5 * time.Second
	walkShare = 200
	openShare = 20
	// fullShare is by how much shorter the pause is while the workspace counts as full.
	fullShare = 20
	// grace is by how much a workspace may outgrow what it was stopped at when it is started again to be cleaned up.
	grace = 64 << 20
)

// Usage is what the agent holds of a file system.
type Usage struct {
	Bytes  int64
	Inodes int64
	Beside int64         // those of Bytes that are in the agent's home, not in the workspace
	Whole  bool          // all of it could be read: the owner of a folder can close it to themselves, too
	Took   time.Duration // to measure
}

// Folder is a folder on a disk that the agent can fill.
type Folder struct{ Path, Of string }

// Prison is what a Guard needs to know of a prison, and to do to it.
type Prison struct {
	Workspace string   // folder of the workspace; required
	Others    []Folder // on other disks, maybe
	// Measure walks through workspace and home. With an error, its result is what could be measured. Required.
	Measure func(context.Context) (Usage, error)
	// Exported returns the bytes that were taken out of the workspace: what is committed, exported and removed again
	// comes to more than the workspace has. Required.
	Exported func() int64
	// Halt stops the prison. Required.
	Halt func(context.Context) error
	// Close makes the workspace the agent's and nobody else's again, and reports whether it was not. Required.
	Close func(context.Context) (bool, error)
}

// Full is why a prison was stopped.
type Full struct {
	Message string
	// Enough is a value of the size limit that would do, in gigabytes; 0 if the limit is not the reason.
	Enough int64
	// Disk is a folder on the full disk; empty if the limit is the reason. Inodes says that it has no room for files.
	Disk   string
	Inodes bool
}

// Guard watches one prison.
type Guard struct {
	prison Prison
	log    *log.Logger
	news   chan struct{}
	at     func(path string) (space, error) // what a file system has
	now    func() time.Time

	known struct { // between Run and its callers
		sync.Mutex
		limit int64 // bytes a workspace may have; 0 as long as it is not known
		full  *Full
	}

	// What follows belongs to Run.
	floor   int64
	others  []disk
	walk    <-chan walk // where the result of a walk comes; nil while there is none
	walked  walk        // the last one
	ended   time.Time   // when it ended
	failure string      // of the last walk, logged once
	closing <-chan struct{}
	open    bool // the workspace could not be closed, which was logged
	// excused is what there was when the prison was stopped.
	excused walk
}

// walk is what a walk through the workspace found.
type walk struct {
	usage    Usage
	exported int64
	then     space // when it began
	pause    time.Duration
	err      error
}

// New returns a guard that does nothing before [Guard.Run].
func New(p Prison, logger *log.Logger) *Guard { return newGuard(p, logger, spaceAt, time.Now) }

func newGuard(p Prison, logger *log.Logger, at func(string) (space, error), now func() time.Time) *Guard {
	g := &Guard{prison: p, log: logger, at: at, now: now, ended: now(), news: make(chan struct{}, 1)}
	if s, err := at(p.Workspace); err == nil {
		g.walked.then, g.floor = s, s.floor()
	}
	for _, f := range p.Others {
		s, err := at(f.Path)
		same := func(d disk) bool { return sameDisk(f.Path, d.Path) }
		if err != nil || sameDisk(f.Path, p.Workspace) || slices.ContainsFunc(g.others, same) {
			continue
		}
		g.others = append(g.others, disk{f, s.floor(), s})
		g.walked.then = g.walked.then.with(s)
	}
	return g
}

// Allow sets how many bytes a workspace may have.
func (g *Guard) Allow(bytes int64) {
	g.known.Lock()
	defer g.known.Unlock()
	g.known.limit = bytes
}

// Full returns why the guard has stopped the prison; nil if it has not.
func (g *Guard) Full() *Full {
	g.known.Lock()
	defer g.known.Unlock()
	return g.known.full
}

// News sends when the result of Full has changed.
func (g *Guard) News() <-chan struct{} { return g.news }

func (g *Guard) limit() int64 {
	g.known.Lock()
	defer g.known.Unlock()
	return g.known.limit
}

// set sets the result of Full.
func (g *Guard) set(f *Full) {
	g.known.Lock()
	before := g.known.full
	g.known.full = f
	g.known.Unlock()
	if (before == nil) == (f == nil) {
		return
	}
	select {
	case g.news <- struct{}{}:
	default: // one is waiting
	}
}

// Run guards the prison until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if g.closing != nil {
				<-g.closing
			}
			if g.walk != nil {
				<-g.walk
			}
			return
		case <-g.closing:
			g.closing = nil
		case found := <-g.walk:
			g.learn(ctx, found)
		case <-tick.C:
			if g.closing == nil { // an agent can hold it up
				done := make(chan struct{})
				g.closing = done
				go func() {
					defer close(done)
					g.close(ctx)
				}()
			}
		}
		g.check(ctx)
	}
}

// close closes the workspace again when the agent, who owns it, has opened it to other users of the host, and opens it
// when the agent has closed it to itself.
func (g *Guard) close(ctx context.Context) {
	changed, err := g.prison.Close(ctx)
	if err != nil && ctx.Err() == nil && !g.open {
		g.log.Printf("keep the workspace to the agent: %v", err)
	}
	if changed && err == nil {
		g.log.Print("the workspace was open to other users of this host, or closed to the agent; it is the agent's alone again")
	}
	g.open = err != nil
}

// check stops the prison if it must be stopped.
func (g *Guard) check(ctx context.Context) {
	s, err := g.at(g.prison.Workspace)
	if err != nil {
		return
	}
	besides, where := "", ""
	for i, d := range g.others {
		there, err := g.at(d.Path)
		if err != nil { // the prison does not use that disk any more; what it held must not hide what the others gain
			there = d.last
			there.free, there.inodesFree = math.MaxInt64, there.inodes
		}
		g.others[i].last = there
		s = s.with(there)
		if why := d.full(there); besides == "" && why != "" {
			besides, where = why, d.Path
		}
	}
	g.measure(ctx, s)
	why, full := cmp.Or(g.verdict(s), besides), g.Full()
	switch {
	case why == "":
		g.excused = walk{}
		g.set(nil)
		return
	case full != nil && g.walked.usage.Bytes <= g.excused.usage.Bytes+grace && g.walked.exported <= g.excused.exported+grace &&
		s.free >= g.floor && besides == "":
		return // reported before; started again, the agent may clean up
	}
	g.log.Print(why)
	if err := g.prison.Halt(ctx); err != nil {
		g.log.Printf("stop the prison: %v", err)
		return
	}
	g.excused = g.walked
	g.set(g.full(why, where, s))
}

// full says what the prison was stopped for; where is a folder on another full disk.
func (g *Guard) full(why, where string, s space) *Full {
	f := &Full{Message: why + "; the prison was stopped"}
	switch most, limit := max(g.walked.usage.Bytes, g.walked.exported), g.limit(); {
	case limit > 0 && most > limit:
		f.Enough = 2 * (most>>30 + 1)
	case s.crowded():
		f.Disk, f.Inodes = g.prison.Workspace, true
	case g.verdict(s) == "":
		f.Disk = where
	default:
		f.Disk = g.prison.Workspace
	}
	return f
}

// due reports whether the workspace may be larger by now than it may be.
func (g *Guard) due(s space) bool {
	then := g.walked.then
	if s == then {
		return false
	}
	grown, more := max(0, s.used-then.used), max(0, s.inodesUsed-then.inodesUsed)
	limit, full := g.limit(), g.Full() != nil
	much := limit > 0 && max(g.walked.usage.Bytes, g.walked.exported)+grown > limit || g.walked.usage.Inodes+more > maxInodes
	pause := g.walked.pause
	if full {
		pause /= fullShare // somebody waits for it to be over
	}
	return much && !full || g.now().Sub(g.ended) > max(pause, walkEvery)
}

// measure begins a walk that is due, unless one is under way.
func (g *Guard) measure(ctx context.Context, s space) {
	if g.walk != nil || !g.due(s) {
		return
	}
	result := make(chan walk, 1)
	go func() {
		found := walk{exported: g.prison.Exported(), then: s}
		begun := g.now()
		found.usage, found.err = g.prison.Measure(ctx)
		found.pause = openShare*(g.now().Sub(begun)-found.usage.Took) + walkShare*found.usage.Took
		result <- found
	}()
	g.walk = result
}

// learn takes what a walk has found.
func (g *Guard) learn(ctx context.Context, found walk) {
	g.walk = nil
	if ctx.Err() != nil {
		return
	}
	failure, before := "", g.walked
	if found.err != nil {
		failure, found.pause = found.err.Error(), before.pause
	}
	if failure != g.failure && failure != "" {
		g.log.Printf("measure the workspace: %v", failure)
	}
	if !found.usage.Whole {
		// What hides, or keeps from being measured, cannot be more than the disks have grown by.
		found.usage.Bytes = max(found.usage.Bytes, before.usage.Bytes+found.then.used-before.then.used)
		found.usage.Inodes = max(found.usage.Inodes, before.usage.Inodes+found.then.inodesUsed-before.then.inodesUsed)
	}
	g.failure, g.walked, g.ended = failure, found, g.now()
}

// verdict returns why the prison must be stopped; empty if it need not be.
func (g *Guard) verdict(s space) string {
	limit, usage := cmp.Or(g.limit(), math.MaxInt64), g.walked.usage
	switch {
	case s.free < g.floor:
		return fmt.Sprintf("the disk has %s left", megabytes(s.free))
	case s.crowded():
		return fmt.Sprintf("the disk has room for %d more files", s.inodesFree)
	case usage.Bytes > limit && usage.Beside > usage.Bytes/2:
		return fmt.Sprintf("the agent's home and the workspace hold %s, more than airlock.maxWorkspace allows (%s)", megabytes(usage.Bytes), megabytes(limit))
	case usage.Bytes > limit:
		return fmt.Sprintf("the workspace holds %s, more than airlock.maxWorkspace allows (%s)", megabytes(usage.Bytes), megabytes(limit))
	case g.walked.exported > limit:
		return fmt.Sprintf("what was taken out of the workspace holds %s, more than airlock.maxWorkspace allows (%s)", megabytes(g.walked.exported), megabytes(limit))
	case usage.Inodes > maxInodes:
		return fmt.Sprintf("the workspace holds %d files and folders, more than %d", usage.Inodes, maxInodes)
	}
	return ""
}
