// Package recorders keeps a recorder of programs (package execs) running: it starts one, gives it the listeners, and replaces it when it
// ends. Begin with [Start].
package recorders

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/gitops/ticks"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"
	"github.com/git-airlock/git-airlock/prison/watch/execs"
)

const (
	// pause is the delay before a successor starts, if the previous recorder ended within that time.
	pause = 200 * time.Millisecond
	// answerPatience is how long a recorder may take to answer a call. It is killed after at most twice that time.
	answerPatience = 5 * time.Second
)

// environment lets a recorder answer and write at the same time, even on a machine with one processor. The recorder collects garbage only
// when its memory reaches a limit, since a process inside may wait meanwhile. Go's scheduler does not interrupt its short waits.
var environment = []string{"GOGC=off", "GOMEMLIMIT=48MiB", "GOMAXPROCS=4", "GODEBUG=asyncpreemptoff=1"}

// Config describes the record of a prison.
type Config struct {
	Dir  string              // the folder for the record
	Deny []string            // see [execs.ParseRules]
	Env  []string            // the variables of the prison, whose values are masked
	Note func(pid int) error // called with the process id of each recorder
	// First is a pidfd. The recorder kills its process when the caller has ended. It may be nil.
	First *os.File
}

// Recorders keeps the record of a prison's programs. It holds the listeners, so that no call fails while no recorder runs. It is nil for a
// prison without a record.
type Recorders struct {
	Config
	memory execs.Shared
	first  chan child // receives the first recorder; nil after Begin

	mu        sync.Mutex
	listeners [execs.Slots]*held
	next      int   // the slot that was not used for the longest time
	current   child // the recorder that runs
	ended     bool
	done      chan struct{} // closed when the last recorder has ended
}

// held is a listener.
type held struct {
	*os.File
	given  execs.Given
	mark   execs.Mark // at the last check
	waited bool       // a call waited at the last check
}

// child is a recorder.
type child struct {
	process *os.Process
	link    wire.Conn
	err     error
}

// Start starts a recorder for a prison that may not run yet.
func Start(c Config) (*Recorders, error) {
	memory, err := execs.NewShared()
	if err != nil {
		return nil, fmt.Errorf("record programs: %w", err)
	}
	r := &Recorders{Config: c, memory: memory, first: make(chan child, 1), done: make(chan struct{})}
	go func() { r.first <- r.start() }()
	return r, nil
}

// start starts a recorder, which waits for the first message.
func (r *Recorders) start() child {
	files := []*os.File{r.memory.File}
	if r.First != nil {
		files = append(files, r.First)
	}
	process, link, err := walls.Child{
		Role: wire.Recorder, Env: environment, Files: files,
		Config: execs.Config{Dir: wire.Pack(r.Dir), Deny: wire.PackAll(r.Deny), Env: wire.PackAll(r.Env), Ends: r.First != nil},
	}.Start()
	return child{process, link, err}
}

// use makes a recorder the current one and gives it the listeners, unless the prison has ended.
func (r *Recorders) use(c child) error {
	if c.err != nil {
		return c.err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		c.end()
		return nil
	}
	err := errors.Join(c.link.Send(execs.Given{Slot: -1}), r.Note(c.process.Pid))
	for _, l := range r.listeners {
		if l != nil {
			err = errors.Join(err, c.link.Send(l.given, l.File))
		}
	}
	if err != nil {
		c.end()
		return err
	}
	r.current = c
	return nil
}

// end ends a recorder that is not used.
func (c child) end() {
	if c.err != nil {
		return
	}
	c.link.Close()
	c.process.Kill()
	c.process.Wait()
}

// Begin lets the first recorder begin. From then on, a recorder that ends is replaced.
func (r *Recorders) Begin() error {
	c := <-r.first
	r.first = nil
	if err := r.use(c); err != nil {
		close(r.done)
		return err
	}
	go r.replace()
	go r.killStuck()
	return nil
}

// Connect takes the only listener of a prison, and begins.
func (r *Recorders) Connect(listener *os.File) error {
	if r == nil {
		listener.Close()
		return errors.New("a listener arrived for a prison without a record")
	}
	return errors.Join(r.Add(listener, execs.Given{}), r.Begin())
}

// Add takes a listener, and chooses its slot.
func (r *Recorders) Add(listener *os.File, g execs.Given) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range r.listeners {
		g.Slot, r.next = r.next, (r.next+1)%execs.Slots
		old := r.listeners[g.Slot]
		if old != nil && !execs.Abandoned(old.File) {
			continue
		}
		if old != nil {
			old.Close()
		}
		r.memory.Reuse(g)
		r.listeners[g.Slot] = &held{File: listener, given: g}
		if r.current.process != nil {
			r.current.link.Send(g, listener) //nolint:errcheck // if the recorder has ended, its successor gets the listener
		}
		return nil
	}
	listener.Close()
	return fmt.Errorf("the prison executes %d commands already", execs.Slots)
}

// killStuck kills a recorder that does not answer, for example because a signal has stopped it, so that its successor answers.
func (r *Recorders) killStuck() {
	for range ticks.Each(r.done, answerPatience) {
		r.mu.Lock()
		if r.waits() && !r.ended {
			r.current.process.Kill() // replace starts the next one
		}
		r.mu.Unlock()
	}
}

// waits reports whether a call waits although nothing has happened since the last check. It also closes listeners without processes. The
// caller holds the lock.
func (r *Recorders) waits() (late bool) {
	for i, l := range r.listeners {
		if l == nil {
			continue
		}
		if execs.Abandoned(l.File) {
			l.Close()
			r.listeners[i] = nil
			continue
		}
		mark, waits := r.memory.Mark(i, l.File)
		stuck := waits && l.waited && mark == l.mark
		l.waited, l.mark = waits && !stuck, mark
		late = late || stuck
	}
	return late
}

// replace starts a successor for each recorder that ends before the prison.
func (r *Recorders) replace() {
	defer close(r.done)
	for begun := time.Now(); ; begun = time.Now() {
		r.current.process.Wait()
		r.current.link.Close()
		for time.Since(begun) < pause && !r.hasEnded() {
			time.Sleep(pause / 10)
		}
		for !r.hasEnded() {
			if r.use(r.start()) == nil {
				break
			}
			time.Sleep(pause)
		}
		if r.hasEnded() {
			return
		}
	}
}

func (r *Recorders) hasEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// End ends the record of a prison that has ended, or whose processes have been killed, and waits until the recorder has written the end of
// each program. There is no time limit: the recorder ends after the prison's last process.
func (r *Recorders) End() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.ended = true
	current := r.current
	r.mu.Unlock()
	if r.first != nil { // the prison never ran
		c := <-r.first
		c.end()
	} else {
		if current.process != nil {
			current.link.Close()
			current.process.Signal(syscall.SIGCONT) //nolint:errcheck // it has ended
		}
		<-r.done
	}
	r.memory.Close()
	for _, l := range r.listeners {
		if l != nil {
			l.Close()
		}
	}
}
