package native

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"
	"github.com/git-airlock/git-airlock/prison/watch/execs"
)

const (
	// recorderPause is the delay before a successor starts, if the previous recorder ended within that time.
	recorderPause = 200 * time.Millisecond
	// answerPatience is how long a recorder may take for a call. It is killed after one to two of them.
	answerPatience = 5 * time.Second
	// recorderPatience is how long a recorder may write what it has after the end of its prison.
	recorderPatience = 2 * time.Second
)

// recorderEnv lets a recorder answer and write at the same time, also on a machine with one processor. It collects garbage
// rarely, since a process inside may wait meanwhile.
var recorderEnv = []string{"GOGC=200", "GOMAXPROCS=4"}

// programs is the record of a prison's programs. It keeps the listener, so that no call fails while no recorder runs.
type programs struct {
	dir      string
	deny     []string
	env      []string
	note     func(pid int) error
	memory   execs.Shared
	listener *os.File
	first    chan recorderChild

	mu      sync.Mutex
	current recorderChild
	ended   bool
	done    chan struct{} // closed when the last recorder has ended
}

type recorderChild struct {
	process *os.Process
	link    wire.Conn
	err     error
}

// checkPrograms turns the record off if it cannot be made here, unless rules need it.
func checkPrograms(s *prison.Spec) ([]prison.Weakness, error) {
	if !s.Record {
		return nil, nil
	}
	rules, err := execs.ParseRules(s.Deny)
	if err != nil {
		return nil, err
	}
	err = walls.CheckPrograms()
	switch {
	case err == nil && rules.NeedsContent() && os.Geteuid() != 0:
		return nil, walls.Unavailable("only root can read the programs of the prison, which rules with sha256: need")
	case err == nil:
		return nil, nil
	case len(s.Deny) > 0:
		return nil, walls.Unavailable("rules for programs need their record: " + err.Error())
	}
	s.Record = false
	return []prison.Weakness{prison.Unrecorded(err.Error())}, nil
}

// startPrograms starts the recorder of a prison that does not run yet, and returns nil for a prison without a record.
func startPrograms(s prison.Spec, note func(pid int) error) (*programs, error) {
	if !s.Record {
		return nil, nil
	}
	memory, err := execs.NewShared()
	if err != nil {
		return nil, fmt.Errorf("record programs: %w", err)
	}
	p := &programs{
		dir: s.Dir, deny: s.Deny, env: s.Env, note: note, memory: memory,
		first: make(chan recorderChild, 1), done: make(chan struct{}),
	}
	go func() { p.first <- p.start() }()
	return p, nil
}

// start starts a recorder. It waits for the listener.
func (p *programs) start() recorderChild {
	process, link, err := walls.Child{
		Role: wire.Recorder, Env: recorderEnv, Files: []*os.File{p.memory.File},
		Config: execs.Config{Dir: wire.Pack(p.dir), Deny: wire.PackAll(p.deny), Env: wire.PackAll(p.env)},
	}.Start()
	return recorderChild{process, link, err}
}

// give gives a recorder the listener.
func (p *programs) give(c recorderChild) error {
	if c.err != nil {
		return c.err
	}
	err := errors.Join(c.link.Send(wire.Announcement{}, p.listener), p.note(c.process.Pid))
	if err != nil {
		c.end()
	}
	return err
}

// end ends a recorder, and waits until it has written everything.
func (c recorderChild) end() {
	if c.err != nil {
		return
	}
	c.link.Close()
	late := time.AfterFunc(recorderPatience, func() { c.process.Kill() })
	c.process.Wait()
	late.Stop()
}

// Connect takes the listener. From then on, a recorder that ends is replaced.
func (p *programs) Connect(listener *os.File) error {
	if p == nil {
		listener.Close()
		return errors.New("a listener arrived for a prison without a record")
	}
	p.listener = listener
	c := <-p.first
	p.first = nil
	if err := p.give(c); err != nil {
		close(p.done)
		return err
	}
	p.current = c
	go p.replace()
	go p.hasten()
	return nil
}

// hasten kills a recorder that does not answer, such as one that was stopped by a signal, so that its successor does.
func (p *programs) hasten() {
	poll := time.NewTicker(answerPatience)
	defer poll.Stop()
	var before execs.Mark
	for waited := false; ; {
		select {
		case <-p.done:
			return
		case <-poll.C:
		}
		mark, waits := p.memory.Mark(int(p.listener.Fd()))
		if waits && waited && mark == before {
			p.mu.Lock()
			p.current.process.Kill() // replace starts the next one
			p.mu.Unlock()
			waits = false
		}
		waited, before = waits, mark
	}
}

// replace starts a successor for each recorder that ends before the prison.
func (p *programs) replace() {
	defer close(p.done)
	for begun := time.Now(); ; begun = time.Now() {
		p.current.process.Wait()
		p.current.link.Close()
		for time.Since(begun) < recorderPause && !p.hasEnded() {
			time.Sleep(recorderPause / 10)
		}
		for {
			if p.hasEnded() {
				return
			}
			c := p.start()
			if p.give(c) != nil {
				time.Sleep(recorderPause)
				continue
			}
			if !p.take(c) {
				c.end()
				return
			}
			break
		}
	}
}

// take makes a recorder the current one, unless the prison has ended.
func (p *programs) take(c recorderChild) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.current = c
	}
	return !p.ended
}

func (p *programs) hasEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// End ends the record of a prison that has ended. A prison without a record has a nil programs.
func (p *programs) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.ended = true
	current := p.current
	p.mu.Unlock()
	if p.first != nil { // no listener came
		c := <-p.first
		c.end()
	} else {
		if current.process != nil {
			current.link.Close()
			late := time.AfterFunc(recorderPatience, func() { current.process.Kill() })
			defer late.Stop()
		}
		<-p.done
	}
	wire.CloseAll([]*os.File{p.memory.File, p.listener})
}
