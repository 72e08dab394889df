package promote

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// cycleLock is the file of the host state that is locked while somebody makes a cycle or must see none.
const cycleLock = "cycle.lock"

// NotesRef is where provenance is kept.
const NotesRef = "refs/notes/airlock"

// Engine makes promotion cycles for one airlock.
type Engine struct {
	Repo   *gitops.Repository // seen from the airlock's worktree; required
	Store  airlock.Store      // required
	Record airlock.Record     // required
	// Open opens an exporter; it stays open until Close or until it fails. Required.
	Open func(context.Context) (Exporter, error)
	// Halt stops the prison; the watchdog of the daemon calls it before the disk is full. Without it there is no watchdog.
	Halt func(context.Context) error
	// Shut makes the workspace the agent's and nobody else's again, and tells whether it was not.
	Shut func(context.Context) (bool, error)

	// HomeDisk names a folder on the disk that has the agent's home, if one is known; the watchdog looks after that disk, too.
	HomeDisk func() string

	// Progress is told what a cycle is at, and how much of that is done; all is 0 where it is not known. nil: nobody is.
	Progress func(what string, done, all int)

	exporter Exporter
	received gitops.OID // last inner tip that the quarantine accepted
	refused  refusal    // the last one that it did not, if that took long
	asked    time.Time  // when a remote was asked for what it promised
	settings Settings   // of the last cycle
	inWay    inWay
	filter   filterPause
	// overtaken tells that a ref of ours moved under the last cycle: twice in a row is more than chance.
	overtaken bool
	dog       *watchdog // of the daemon; nil elsewhere
	teams     teams     // as they were read last
	recalled  *ledger   // as the last cycle left it; nil if that failed
	stamp     fs.FileInfo
	files     int64      // that the newest tree has at most; 0 before they were counted
	counting  sync.Mutex // of files
}

// Options of one cycle.
type Options struct {
	// Land lands what would otherwise wait for a review.
	Land bool
	// UpTo names the last commit to be landed, as [Engine.Drop] has its names; empty means all.
	UpTo string
	// From is the inner branch or revision that is promoted in the place of main; empty means main.
	From string
	// Engine goes before the setting; empty means the setting.
	Engine string

	upTo *gitops.OID // the inner commit that UpTo stands for; pending ones have other names once they are built anew
}

// cycle holds the facts of one cycle.
type cycle struct {
	*Engine
	options  Options
	config   gitops.Config // the user's, and what was given at the start
	origins  []gitops.Setting
	gate     gate
	teamRef  gitops.OID // of the team's policy; empty if there is none
	noted    gitops.OID // where the notes stand
	drafted  gitops.OID // where they are to stand; empty if nothing was noted
	later    bool       // some commits are left for the next cycle to check
	mayLand  gitops.OID // the newest pending commit that no rule keeps from landing; empty if there is none
	now      time.Time
	tip      gitops.OID // of the outer branch; empty if it is deleted
	promoted gitops.OID
	pending  gitops.OID
	inner    gitops.OID // of the inner main; empty if it is not fit to be promoted
	ledger   *ledger
	notes    []gitops.Note // for what was built, and removals for what was dropped
	base     pair          // root and base
	q        *gitops.Quarantine
	main     gitops.OID        // of the workspace, as it was read, empty if there is none
	mainErr  error             // why it could not be read
	inside   *gitops.Inspector // of the quarantine
	bridge   *gitops.Bridge    // nil until something is built
	across   *gitops.Inspector // of the bridge
	fresh    delivery          // what was built
	holds    []Hold
	outcome  Outcome
}

// Dir is the airlock's host state.
func (e *Engine) Dir() string { return e.Store.Dir(e.Record.ID) }

// Close closes the exporter.
func (e *Engine) Close() error {
	if e.exporter == nil {
		return nil
	}
	err := e.exporter.Close()
	e.exporter = nil
	return err
}

// Cycle makes one promotion cycle and returns what it left. It waits for a cycle of another process to end.
// What holds is no error; an error says that the cycle could not be made, and that what waits still waits.
func (e *Engine) Cycle(ctx context.Context, options Options) (Outcome, error) {
	hostenv.Refresh()
	unlock, err := e.Store.LockFile(ctx, e.Record.ID, cycleLock)
	if err != nil {
		return Outcome{}, err
	}
	defer unlock()
	before, err := readOutcome(e.Dir())
	if err != nil {
		return before, err
	}
	if options.upTo == nil {
		options.upTo = new(gitops.OID)
	}
	c := &cycle{Engine: e, options: options, outcome: before, now: time.Now()}
	if err = c.run(ctx); ctx.Err() == nil {
		err = c.excuse(err)
	}
	if err != nil {
		failed := before.fail(ctx, e.Dir(), err)
		if e.unwritable() != nil {
			failed = nil // the failure itself cannot be written down either
		}
		return before, errors.Join(err, failed)
	}
	c.outcome.Failure = ""
	return c.finish(before)
}

// excuse makes a hold of what kept a cycle from being made and is no failure of its own, or returns the error.
func (c *cycle) excuse(err error) error {
	var locked *gitops.LockedError
	switch {
	case err == nil:
	case gitops.NoRoom(err) || diskFull(c.Dir()):
		c.hold(c.diskFull(err))
		if !diskFull(c.Dir()) {
			c.outcome.Retry = mendedPoll // a quota, say, or another file system: no number tells when there is room
		}
	case errors.As(err, &locked):
		c.holdLocked(refLocked(locked.Lock))
	case errors.Is(err, gitops.ErrRefMoved) && !c.overtaken: // by another airlock's notes, say
		c.overtaken = true
		c.outcome.Retry = unsettledPoll
		return nil
	default:
		return err
	}
	c.overtaken = false
	return nil
}

// drainTime is how long Drain waits for other git commands to end.
const drainTime = 3 * time.Second

// Drain makes cycles until one is not kept from landing by what should be over in a moment.
func (e *Engine) Drain(ctx context.Context, options Options) (Outcome, error) {
	var total Outcome
	options.upTo = new(gitops.OID)
	for end := time.Now().Add(drainTime); ; {
		o, err := e.Cycle(ctx, options)
		if o.Landed > 0 || o.Pending > total.Pending { // it gets further
			end = time.Now().Add(drainTime)
		}
		o.Landed += total.Landed
		total = o
		if err != nil || o.Retry != unsettledPoll || time.Now().After(end) {
			return total, err
		}
		time.Sleep(unsettledPoll)
	}
}

// run goes the data path. Each step leaves what can be thrown away, until the last.
func (c *cycle) run(ctx context.Context) (err error) {
	if err := c.unwritable(); err != nil {
		return err
	}
	if err := c.recover(ctx); err != nil || len(c.holds) > 0 {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for _, step := range []func(context.Context) error{c.heal, c.survey, c.aim, c.settle, c.rules, c.export, c.build, c.deliver, c.land} {
		err := step(ctx)
		var invalid *gitops.Invalid
		if errors.As(err, &invalid) {
			// What was pending before can still land.
			c.inner = ""
			c.hold(c.innerInvalid(invalid))
			continue
		}
		if err != nil {
			return err
		}
	}
	if c.outcome.Landed == 0 {
		return nil
	}
	return c.q.Tidy(ctx)
}

// openBridge makes the bridge, if there is none yet.
func (c *cycle) openBridge(ctx context.Context) (err error) {
	if c.bridge != nil {
		return nil
	}
	if c.bridge, err = c.q.Bridge(c.Repo, c.bridgeDir()); err == nil {
		c.across = c.bridge.Inspect(ctx, c.inside)
	}
	return err
}

func (c *cycle) bridgeDir() string { return filepath.Join(c.Dir(), "bridge") }

// close ends what reads and throws away what was built and not delivered. What was delivered is reached by refs now.
func (c *cycle) close() error {
	if c.bridge != nil {
		_ = c.across.Close()
		_ = c.bridge.Close()
		c.bridge = nil
	}
	if c.inside != nil {
		_ = c.inside.Close()
	}
	if c.gate.facts.Ignores != nil {
		_ = c.gate.facts.Ignores.Close()
	}
	return c.release()
}

// at tells what the cycle is at.
func (c *cycle) at(what string, done, all int) {
	if c.Progress != nil {
		c.Progress(what, done, all)
	}
}

func (c *cycle) hold(h Hold) { c.holds = append(c.holds, h) }

func (c *cycle) held(r Reason) bool {
	return slices.ContainsFunc(c.holds, func(h Hold) bool { return h.Reason == r })
}

// recover finishes or takes back a landing that a crash interrupted.
func (c *cycle) recover(ctx context.Context) error {
	gitops.OpenQuarantine(QuarantineDir(c.Dir()), c.Record.Format).Sweep()
	_ = os.RemoveAll(c.bridgeDir()) // what a killed cycle has built: there may be nothing to build in this one
	err := c.Repo.Recover(ctx, c.Dir())
	var collision *gitops.CollisionError
	switch {
	case errors.As(err, &collision):
		c.hold(c.interrupted(ctx, collision.Paths))
		return nil
	case errors.Is(err, gitops.ErrIndexLocked):
		c.holdLocked(c.indexLocked())
		return nil
	case err != nil:
		return err
	}
	return c.release() // a crash may have left it to us
}

// recoverTime is how long Recover waits for a cycle at work, which has begun by recovering.
const recoverTime = 200 * time.Millisecond

// Recover finishes or takes back a landing that a crash interrupted, so that nobody sees half of one. What
// hinders it is for the next cycle to say, as a hold.
func (e *Engine) Recover(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, recoverTime)
	defer cancel()
	unlock, err := e.Store.LockFile(waiting, e.Record.ID, cycleLock)
	if errors.Is(err, airlock.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	if err = e.Repo.Recover(ctx, e.Dir()); err == nil {
		err = e.release()
	}
	var collision *gitops.CollisionError
	if errors.As(err, &collision) || errors.Is(err, gitops.ErrIndexLocked) || errors.Is(err, gitops.ErrUnsettled) {
		return nil
	}
	return err
}

// Settle is Recover for those who go on only if it was done: it waits for a cycle at work, and returns what hinders it.
func (e *Engine) Settle(ctx context.Context) (*Hold, error) {
	unlock, err := e.Store.LockFile(ctx, e.Record.ID, cycleLock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c := &cycle{Engine: e, now: time.Now()}
	if err := c.recover(ctx); err != nil || len(c.holds) == 0 {
		return nil, err
	}
	return &c.holds[0], nil
}

// survey reads the settings and where everything stands outside and inside, all at the same time.
func (c *cycle) survey(ctx context.Context) error {
	var all sync.WaitGroup
	var configured, looked error
	all.Go(func() { configured = c.configure(ctx) })
	all.Go(func() { looked = c.look(ctx) })
	all.Go(func() { c.main, c.mainErr = c.wanted(ctx) })
	all.Wait()
	return errors.Join(configured, looked)
}

// configure reads the user's settings as they are now.
func (c *cycle) configure(ctx context.Context) error {
	var err error
	if c.origins, err = c.Repo.Settings(ctx); err != nil {
		return err
	}
	c.config = gitops.ConfigOf(c.origins).With(c.Record.Settings)
	// What another setting says that cannot be read must not keep this one from being obeyed.
	if size, err := readMaxWorkspace(c.config); err == nil && c.dog != nil {
		c.dog.allow(size)
	}
	settings, err := ReadSettings(c.config)
	if err != nil {
		return err
	}
	settings.Engine = cmp.Or(c.options.Engine, settings.Engine)
	c.settings = settings
	return nil
}

// look reads where everything stands.
func (c *cycle) look(ctx context.Context) error {
	refs, err := c.Repo.Refs(ctx, c.Record.Branch, c.Record.Ref("promoted"), c.Record.Ref("pending"), policy.TeamRef, NotesRef)
	if err != nil {
		return err
	}
	c.tip, c.pending = refs[c.Record.Branch], refs[c.Record.Ref("pending")]
	c.teamRef, c.noted = refs[policy.TeamRef], refs[NotesRef]
	c.base = pair{inner: c.Record.Root, outer: c.Record.Base}
	if c.promoted = refs[c.Record.Ref("promoted")]; c.promoted == "" {
		return errors.New("the airlock's ref promoted is gone; to put it back: git update-ref " +
			c.Record.Ref("promoted") + " <the last commit with an airlock note>")
	}
	c.q = gitops.OpenQuarantine(QuarantineDir(c.Dir()), c.Record.Format)
	c.inside = c.q.Inspect(ctx)
	c.ledger, err = c.recall(c.base, c.promoted, c.pending)
	return err
}

func (c *cycle) countLanded(n int) {
	c.outcome.Waits = max(0, c.outcome.Waits-n)
	at := now()
	c.outcome.Landed += n
	if c.later && n > 0 {
		c.outcome.Retry = unsettledPoll
	}
	c.outcome.LastLandedAt = &at
}

// finish writes down what the cycle left.
func (c *cycle) finish(before Outcome) (Outcome, error) {
	c.outcome.Holds = sortHolds(append(c.holds, c.carried()...), before.Holds, time.Now())
	if c.inner != "" {
		c.outcome.Inner = c.inner
	}
	if c.ledger != nil {
		c.outcome.Pending, c.outcome.Total = len(c.ledger.tail), len(c.ledger.landed)
	}
	c.remember(c.ledger)
	err := c.outcome.write(c.Dir())
	if gitops.NoRoom(err) && !c.held(DiskFull) {
		c.hold(c.diskFull(nil))
		c.outcome.Holds = sortHolds(append(c.holds, c.carried()...), before.Holds, time.Now())
	}
	if c.held(DiskFull) {
		err = nil // there may be no room for it; State looks for itself
	}
	return c.outcome, err
}

const (
	// mendedPoll is how often the workspace is looked at while its repository is broken: what mends it
	// (an object put back, say) need not touch a ref.
	mendedPoll = 900 * time.Millisecond
	// unsettledPoll is for what should be over in a moment: another git command at work.
	unsettledPoll = 60 * time.Millisecond
)
