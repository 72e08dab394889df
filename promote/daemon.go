package promote

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

const daemonLock = "daemon.lock"

// ErrElsewhere says that the daemon of an airlock lives where this process cannot see it: in another container, or on another
// host that has the repository's disk.
var ErrElsewhere = errors.New("the daemon runs in another container or on another host")

// ErrMoved says that the host state or the worktree of an airlock is not where it was.
var ErrMoved = errors.New("the worktree is not where it was")

// Daemon makes promotion cycles whenever something has changed inside or outside, until ctx ends or the
// airlock is gone from where it was: [ErrMoved]. It calls ready once it holds the airlock's daemon lock; if another daemon holds
// that, it returns [airlock.ErrBusy].
func (e *Engine) Daemon(ctx context.Context, logger *log.Logger, ready func()) error {
	// Whoever asks whether the daemon lives holds the lock for an instant.
	waiting, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	unlock, err := e.Store.LockFile(waiting, e.Record.ID, daemonLock)
	if err != nil {
		return err
	}
	defer unlock()
	defer e.Close()
	lockFile := filepath.Join(e.Dir(), daemonLock)
	if err := os.WriteFile(lockFile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return err
	}
	// Who stops the airlock may have found no daemon a moment ago.
	if now, err := e.Store.Load(e.Record.ID); err != nil || now.Phase != airlock.Running {
		return err
	}
	ready()
	e.dog = newWatchdog(e, logger)
	d := &daemon{Engine: e, log: logger, outer: watchOuter(e.Repo, e.Record)}
	defer d.outer.close()
	guarded, leave := context.WithCancel(ctx)
	var guard sync.WaitGroup
	guard.Go(func() { d.guard(guarded) })
	defer guard.Wait()
	defer leave()
	for ctx.Err() == nil {
		if !d.inPlace() {
			return ErrMoved
		}
		d.cycle(ctx)
		d.wait(ctx)
	}
	return nil
}

// inPlace tells whether the airlock is where it was.
func (d *daemon) inPlace() bool {
	return exists(filepath.Join(d.Dir(), daemonLock)) && d.Repo.InPlace()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// daemon is a Daemon at work.
type daemon struct {
	*Engine
	log     *log.Logger
	outer   *outerWatch
	last    Outcome
	failure string        // of the last cycle, said once
	failing time.Duration // to wait before the next try, longer each time
	inner   <-chan struct{}
	seen    string // what the outer files looked like before the last cycle
	ajar    bool   // the workspace could not be closed, which was said; the guard's
}

// failedPoll is how long the daemon waits after a cycle that could not be made; after the next one twice as long,
// up to failedPollMax: what failed may ask the user for a passphrase.
const (
	failedPoll    = time.Second
	failedPollMax = 32 * time.Second
)

func (d *daemon) cycle(ctx context.Context) {
	if d.inner == nil {
		d.watchInner(ctx)
	}
	d.seen = d.outer.signature(d.last.Holds)
	outcome, err := d.Cycle(ctx, Options{})
	d.outer.policy = d.teams.file // another one than before is looked at in one more cycle
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if d.failure != err.Error() {
			d.log.Print(err)
		}
		d.failure = err.Error()
		d.failing = min(max(2*d.failing, failedPoll), failedPollMax)
		if d.unwritable() != nil {
			d.failing = failedPoll // nothing else is tried before that has changed
		}
		d.last.Retry = d.failing
		return
	}
	d.failing = 0
	if d.failure != "" {
		d.log.Print("works again")
		d.failure = ""
	}
	d.tell(outcome)
	if len(outcome.Holds) != len(d.last.Holds) {
		// Files in the way are watched from now on; a change between the cycle and this line is found by the next one.
		d.seen = ""
	}
	d.last = outcome
}

// tell logs what changed.
func (d *daemon) tell(o Outcome) {
	if o.Landed > 0 {
		d.log.Printf("landed %d commits", o.Landed)
	}
	for i, h := range o.Holds {
		if i >= len(d.last.Holds) || d.last.Holds[i].Reason != h.Reason || d.last.Holds[i].Message != h.Message {
			d.log.Printf("held: %s: %s", h.Reason, h.Message)
		}
	}
}

// watchInner asks to be woken by the workspace. Without an exporter the cycle will say why there is none.
func (d *daemon) watchInner(ctx context.Context) {
	exporter, err := d.open(ctx)
	if err != nil {
		return
	}
	if d.inner, err = exporter.Watch(ctx); err != nil {
		d.inner = nil
	}
}

const (
	// poll is how often the outer files are looked at whatever inotify says; it costs a few stat calls.
	poll = time.Second
	// heldPoll is the same while something holds: a file in the way gives no other sign when it goes.
	heldPoll = 250 * time.Millisecond
)

// wait returns when there may be something to do.
func (d *daemon) wait(ctx context.Context) {
	pause := poll
	if len(d.last.Holds) > 0 {
		pause = heldPoll
	}
	retry := (<-chan time.Time)(nil)
	if d.last.Retry > 0 {
		retry = time.After(d.last.Retry)
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-d.inner:
			if !open {
				// The exporter has ended; the next cycle opens another.
				d.inner = nil
				_ = d.Close()
				if d.failing > 0 {
					continue // as long as a cycle fails, another exporter may end at once as well
				}
			}
			return
		case <-retry:
			return
		case <-d.outer.events():
		case <-d.dog.news:
			return
		case <-tick.C:
			if !d.inPlace() {
				return
			}
		}
		if d.outer.signature(d.last.Holds) != d.seen {
			return
		}
	}
}

// guard keeps the workspace closed and the disk from being full, whatever the cycles are at, until ctx ends.
func (d *daemon) guard(ctx context.Context) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var shutting chan struct{} // until it is closed: an agent can hold it up
	for {
		select {
		case <-ctx.Done():
			if shutting != nil {
				<-shutting
			}
			if d.dog.walk != nil {
				<-d.dog.walk
			}
			return
		case <-shutting:
			shutting = nil
		case found := <-d.dog.walk:
			d.dog.learn(ctx, found)
		case <-tick.C:
			if shutting == nil {
				done := make(chan struct{})
				shutting = done
				go func() {
					defer close(done)
					d.shut(ctx)
				}()
			}
		}
		d.dog.look(ctx)
	}
}

// shut closes the workspace again when the agent, whose it is, has opened it to other users of the host, and opens it when
// they have closed it to themselves.
func (d *daemon) shut(ctx context.Context) {
	if d.Shut == nil {
		return
	}
	changed, err := d.Shut(ctx)
	if err != nil && ctx.Err() == nil && !d.ajar {
		d.log.Printf("keep the workspace to the agent: %v", err)
	}
	if changed && err == nil {
		d.log.Print("the workspace was open to other users of this host, or closed to the agent; it is the agent's alone again")
	}
	d.ajar = err != nil
}

// DaemonPID tells the process id of the daemon of an airlock, 0 if none runs. The lock is the
// truth, the number in it a help: without a process that it is the number of, [ErrElsewhere].
func DaemonPID(store airlock.Store, id string) (int, error) {
	file := filepath.Join(store.Dir(id), daemonLock)
	none, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	said, before := "", 0
	for range 20 {
		unlock, err := store.LockFile(none, id, daemonLock)
		if err == nil {
			unlock()
			return 0, nil
		}
		if !errors.Is(err, airlock.ErrBusy) {
			return 0, err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		said = strings.TrimSpace(string(content))
		if pid, err := strconv.Atoi(said); err == nil && holds(pid, file) {
			return pid, nil
		}
		// A daemon that has just begun has not written its number yet, and the one that is there may be anybody's by now.
		// Others who ask hold the lock for an instant only.
		pid := lockHolder(file)
		if pid != 0 && pid == before {
			return pid, nil
		}
		before = pid
		time.Sleep(5 * time.Millisecond)
	}
	return 0, fmt.Errorf("%w: %q holds %q, and is none of the processes here", ErrElsewhere, gitops.Escape(said), file)
}
