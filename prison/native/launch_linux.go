package native

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// launchedState is what the keeper writes to [commandName].
type launchedState struct {
	Argv   []string `json:"argv"`
	Exited bool     `json:"exited"`
	Status int      `json:"status"`
}

// launch starts a process that nobody waits for. Its terminal stays here and is read all the time,
// so that it never blocks; what it shows goes to the keeper.
func (s *server) launch(c conn, r request) {
	p, code, err := s.beginLaunch(r)
	if err != nil {
		c.send(reply{Error: err.Error(), Code: code})
		return
	}
	s.note(launchedState{Argv: r.Argv})
	c.send(reply{})
	c.Close()

	t := s.launched
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.drain(t)
	}()
	status := <-p.exited
	s.launchMu.Lock() // who hears of the end may launch the next one
	s.note(launchedState{Argv: r.Argv, Exited: true, Status: status})
	s.launched = nil
	s.launchMu.Unlock()
	select {
	case <-drained:
	case <-time.After(silence): // others may still show something on the terminal: in the log, to nobody else
	}
	t.part()
	<-drained
	t.master.Close()
}

// note lets the keeper write down how the command fares; from here on Launched tells of it.
func (s *server) note(l launchedState) {
	s.tell(announcement{State: &l})
	select {
	case <-s.noted:
	case <-time.After(killPatience):
	}
}

func (s *server) beginLaunch(r request) (p started, code string, err error) {
	s.launchMu.Lock()
	defer s.launchMu.Unlock()
	switch {
	case !s.Listens:
		return p, "", errors.New("a prison that ends with its caller launches nothing")
	case s.launched != nil:
		return p, "", errors.New("a launched command runs already")
	}
	p, code, err = s.start(r)
	if err == nil {
		s.launched = &shared{master: p.ends[0]}
	}
	return p, code, err
}

// drain reads until the last process has closed the terminal; Linux says EIO then.
func (s *server) drain(t *shared) {
	buf := make([]byte, 32<<10)
	for {
		n, err := t.master.Read(buf)
		if n > 0 {
			t.show(buf[:n])
			s.tell(announcement{Output: buf[:n]})
		}
		if err != nil {
			return
		}
	}
}

// join gives a caller the terminal to type into, and a pipe of its own to read from.
func (s *server) join(c conn) {
	s.launchMu.Lock()
	defer s.launchMu.Unlock()
	if s.launched == nil {
		c.send(reply{Error: "no launched command runs", Code: codeNotLaunched})
		return
	}
	reader, writer, err := pipe()
	if err != nil {
		c.send(reply{Error: err.Error()})
		return
	}
	defer reader.Close()
	unix.FcntlInt(writer.Fd(), unix.F_SETPIPE_SZ, joinedBuffer) //nolint:errcheck // more is better, and may be refused
	if err := c.pass(reader, s.launched.master); err != nil {
		writer.Close()
		return
	}
	s.launched.add(writer)
}

// joinedBuffer is how much a caller who does not read may be behind.
const joinedBuffer = 1 << 20

// shared is a terminal with those who look at it.
type shared struct {
	master *os.File
	mu     sync.Mutex
	joined []*os.File
	parted bool
}

func (t *shared) add(writer *os.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parted || unix.SetNonblock(int(writer.Fd()), true) != nil {
		writer.Close()
		return
	}
	t.joined = append(t.joined, writer)
}

// show never waits for anybody: the command must go on. Who is too far behind is sent away.
func (t *shared) show(output []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.joined = slices.DeleteFunc(t.joined, func(w *os.File) bool {
		n, err := unix.Write(int(w.Fd()), output)
		if err == nil && n == len(output) {
			return false
		}
		w.Close()
		return true
	})
}

// part sends everybody away.
func (t *shared) part() {
	t.mu.Lock()
	defer t.mu.Unlock()
	closeAll(t.joined)
	t.joined, t.parted = nil, true
}
