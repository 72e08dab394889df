package watch

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// interval is the pause between two checks of the file systems.
	interval = time.Second
	// maxInodes is the maximum number of files and folders in a workspace, however small they are.
	maxInodes = 5_000_000
	// walkEvery is the shortest pause between two walks while the file system changes. The pause is also at least
	// walkShare times the duration of the walk, plus openShare times the time that its prison took to start.
	walkEvery = 5 * time.Second
	walkShare = 200
	openShare = 20
	// fullShare divides the pause while the workspace counts as full.
	fullShare = 20
	// grace is the number of bytes by which a workspace may grow after the prison was stopped. It lets the user start
	// the prison again and clean up.
	grace = 64 << 20
	// tellAgain is the shortest pause between two log lines with a reason for stopping the prison: on a full disk the guard stops the prison
	// at each check, since the prison may have been started again.
	tellAgain = 10 * time.Minute
	// askTime bounds the time to learn whether the prison has been started again. The prison is stopped afterwards.
	askTime = 2 * time.Second
)

// Usage is the agent's part of a file system.
type Usage struct {
	Bytes  int64
	Inodes int64
	Beside int64         // the part of Bytes that is in the agent's home, not in the workspace
	Whole  bool          // everything could be read; the agent can make a folder unreadable even to itself
	Took   time.Duration // duration of the measurement
}

// Folder is a folder on a disk that the agent can fill. Of describes the folder in messages, as in "the disk of OF has 5 MB left".
type Folder struct{ Path, Of string }

// Prison provides a Guard's access to a prison.
type Prison struct {
	Workspace string   // folder of the workspace; required
	Others    []Folder // folders that may be on other disks
	// Measure walks through workspace and home. With an error, its result covers only the files that could be measured. Required.
	Measure func(context.Context) (Usage, error)
	// Exported returns the bytes that were exported from the workspace. Commits that were exported and then removed
	// inside add up to more than the workspace holds. Required.
	Exported func() int64
	// Runs reports whether the prison runs, and true if that cannot be learned. While a reason for stopping the prison remains, Halt is called
	// again only if it does. Required.
	Runs func(context.Context) bool
	// Halt stops the prison. Required.
	Halt func(context.Context) error
	// Close makes the workspace accessible to the agent alone, and reports whether that changed anything. Required.
	Close func(context.Context) (bool, error)
}

// Full is the reason for which a prison was stopped.
type Full struct {
	Message string
	// Enough is a sufficient value of the size limit, in gigabytes, or 0 if the limit is not the reason.
	Enough int64
	// Disk is a folder on the full disk, or empty if the limit is the reason. Inodes reports that the disk has no
	// inodes left.
	Disk   string
	Inodes bool
	// Runs reports that the prison could not be stopped.
	Runs bool
	// Stops is how often a running prison was stopped since there was no reason.
	Stops int
}

// sameAs reports whether another reason is the same and has stopped no further prison. The message of a full disk does not count: its
// numbers change all the time.
func (f *Full) sameAs(other *Full) bool {
	if f == nil || other == nil {
		return f == other
	}
	a, b := *f, *other
	if a.Enough == 0 {
		a.Message, b.Message = "", ""
	}
	return a == b
}

// Guard watches one prison.
type Guard struct {
	prison Prison
	log    *log.Logger
	news   chan struct{}
	at     func(path string) (space, error) // reads the space of the file system of path
	now    func() time.Time

	limit atomic.Int64 // maximum bytes of the workspace; 0 while it is not known
	full  atomic.Pointer[Full]

	// Only Run uses the following fields, except for open, which close uses. close runs in a goroutine until closing is closed.
	floor   int64 // bytes that must stay free on the workspace's disk
	others  []disk
	walk    <-chan walk     // receives the result of the running walk; nil if none runs
	walked  walk            // the last one
	ended   time.Time       // end of the last walk
	failure string          // of the last walk, logged once
	closing <-chan struct{} // nil if close does not run
	open    bool            // the workspace could not be closed, which was logged
	halting string          // error of the last Halt, empty if the prison was stopped
	told    time.Time       // when the reason for stopping the prison was logged last
	// excused is the last walk before the prison was stopped. A prison that runs again may grow by grace.
	excused walk
}

// walk is the result of a walk through the workspace.
type walk struct {
	usage    Usage
	exported int64
	then     space         // space at the beginning of the walk
	pause    time.Duration // until the next walk
	err      error
}

// New returns a guard. It does nothing until [Guard.Run] is called.
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

// Allow sets the maximum size of the workspace in bytes.
func (g *Guard) Allow(bytes int64) { g.limit.Store(bytes) }

// Full returns the reason for which the guard has stopped the prison, or nil if it has not.
func (g *Guard) Full() *Full { return g.full.Load() }

// News returns a channel that receives a value when the result of Full has changed.
func (g *Guard) News() <-chan struct{} { return g.news }

// set sets the result of Full. The same reason keeps its first message.
func (g *Guard) set(f *Full) {
	if g.Full().sameAs(f) {
		return
	}
	g.full.Store(f)
	select {
	case g.news <- struct{}{}:
	default: // a change is already waiting
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
			if g.closing == nil { // the agent can delay close, so it may still run
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

// close closes the workspace again if the agent, who owns it, has opened it to other users of the host. It opens the
// workspace again if the agent has closed it to itself.
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
		if err != nil { // the prison does not use that disk any more; the disk's bytes must still count, or other growth could hide behind them
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
	why, full := cmp.Or(g.stopReason(s), besides), g.Full()
	switch {
	case why == "":
		g.excused, g.halting = walk{}, ""
		g.set(nil)
		return
	case full != nil && g.halting == "" && g.walked.usage.Bytes <= g.excused.usage.Bytes+grace && g.walked.exported <= g.excused.exported+grace &&
		s.free >= g.floor && besides == "":
		return // reported before; the prison was started again, so that the agent can clean up
	}
	g.halt(ctx, g.describe(why, where, s))
}

// halt stops the prison for a reason, unless it has stopped it before and the prison has not been started again. The reason holds commits
// even if the prison could not be stopped: a full disk, which is the reason, can also be why. The guard then tries again at the next check.
func (g *Guard) halt(ctx context.Context, f *Full) {
	before, again := g.Full(), false
	if before != nil {
		f.Stops, again = before.Stops, !before.Runs && g.runs(ctx)
	}
	if before == nil || again || g.now().Sub(g.told) > tellAgain {
		g.told = g.now()
		g.log.Print(f.Message)
	}
	if before != nil && !before.Runs && !again {
		g.excused = g.walked
		g.set(f)
		return // a prison that is starting now is stopped at the next check, which counts that
	}
	failure := ""
	if err := g.prison.Halt(ctx); err != nil {
		failure = err.Error()
	}
	if failure != "" && failure != g.halting {
		g.log.Printf("stop the prison: %s", failure)
	}
	g.halting = failure
	if f.Runs = failure != ""; !f.Runs {
		g.excused = g.walked
		if before == nil || before.Runs || again {
			f.Stops++
		}
	}
	g.set(f)
}

// runs reports whether the prison runs. The agent can delay the answer, but not for long.
func (g *Guard) runs(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return g.prison.Runs(bounded)
}

// describe returns the reason for stopping the prison. where is a folder on another full disk.
func (g *Guard) describe(why, where string, s space) *Full {
	f := &Full{Message: why}
	switch most, limit := max(g.walked.usage.Bytes, g.walked.exported), g.limit.Load(); {
	case limit > 0 && most > limit:
		f.Enough = 2 * (most>>30 + 1)
	case s.crowded():
		f.Disk, f.Inodes = g.prison.Workspace, true
	case g.stopReason(s) == "":
		f.Disk = where
	default:
		f.Disk = g.prison.Workspace
	}
	return f
}

// due reports whether a walk is due: the workspace may exceed its limit, or the pause is over.
func (g *Guard) due(s space) bool {
	then := g.walked.then
	if s == then {
		return false
	}
	grown, more := max(0, s.used-then.used), max(0, s.inodesUsed-then.inodesUsed)
	limit, full := g.limit.Load(), g.Full() != nil
	much := limit > 0 && max(g.walked.usage.Bytes, g.walked.exported)+grown > limit || g.walked.usage.Inodes+more > maxInodes
	// The exported bytes can grow while others free space on the disk.
	much = much || limit > 0 && g.prison.Exported() > limit
	pause := g.walked.pause
	if full {
		pause /= fullShare // the user waits until the workspace counts as not full
	}
	return much && !full || g.now().Sub(g.ended) > max(pause, walkEvery)
}

// measure begins a walk if one is due and none is running.
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

// learn stores the result of a walk.
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
		// The files that could not be measured cannot be larger than the growth of the disks.
		found.usage.Bytes = max(found.usage.Bytes, before.usage.Bytes+found.then.used-before.then.used)
		found.usage.Inodes = max(found.usage.Inodes, before.usage.Inodes+found.then.inodesUsed-before.then.inodesUsed)
	}
	g.failure, g.walked, g.ended = failure, found, g.now()
}

// stopReason returns the reason why the prison must be stopped, or empty. A limit comes before a full disk, whose numbers change all the time.
func (g *Guard) stopReason(s space) string {
	limit, usage := cmp.Or(g.limit.Load(), math.MaxInt64), g.walked.usage
	switch {
	case usage.Bytes > limit && usage.Beside > usage.Bytes/2:
		return fmt.Sprintf("the agent's home and the workspace hold %s, more than airlock.maxWorkspace allows (%s)", megabytes(usage.Bytes), megabytes(limit))
	case usage.Bytes > limit:
		return fmt.Sprintf("the workspace holds %s, more than airlock.maxWorkspace allows (%s)", megabytes(usage.Bytes), megabytes(limit))
	case g.walked.exported > limit:
		return fmt.Sprintf("commits exported from the workspace hold %s, more than airlock.maxWorkspace allows (%s)", megabytes(g.walked.exported), megabytes(limit))
	case s.free < g.floor:
		return fmt.Sprintf("the disk has %s left", megabytes(s.free))
	case s.crowded():
		return fmt.Sprintf("the disk has room for %d more files", s.inodesFree)
	case usage.Inodes > maxInodes:
		return fmt.Sprintf("the workspace holds %d files and folders, more than %d", usage.Inodes, maxInodes)
	}
	return ""
}
