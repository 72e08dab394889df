package inside

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/modes"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// launch starts a process that no caller waits for. Init keeps the terminal of the process and always reads from
// it, so that the process never blocks. Init sends the output to the keeper.
func (s *server) launch(c wire.Conn, r wire.Request) {
	p, code, err := s.beginLaunch(r)
	if err != nil {
		c.Send(wire.Reply{Error: err.Error(), Code: code})
		return
	}
	s.note(wire.Command{Argv: r.Argv})
	c.Send(wire.Reply{})
	c.Close()

	t := s.launched
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.drain(t)
	}()
	status := <-p.exited
	s.launchMu.Lock() // a caller that sees the end may launch the next command at once
	s.note(wire.Command{Argv: r.Argv, Exited: true, Status: status})
	s.launched = nil
	s.launchMu.Unlock()
	select {
	case <-drained:
	// other processes may still write to the terminal: their output goes to the log only
	case <-time.After(wire.Silence):
	}
	t.disconnect()
	<-drained
	t.master.Close()
}

// note sends the state of the command to the keeper, which writes it to a file. From then on Launched returns this
// state.
func (s *server) note(l wire.Command) {
	s.announce(wire.Announcement{State: &l}) //nolint:errcheck // without a keeper nobody reads it
	select {
	case <-s.noted:
	case <-time.After(wire.KillPatience):
	}
}

func (s *server) beginLaunch(r wire.Request) (p started, code string, err error) {
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

// drain reads the output until the last process has closed the terminal, which Linux reports as EIO.
func (s *server) drain(t *shared) {
	buf := make([]byte, 32<<10)
	for {
		n, err := t.master.Read(buf)
		if n > 0 {
			t.show(buf[:n])
			s.announce(wire.Announcement{Output: buf[:n]}) //nolint:errcheck // without a keeper nobody reads it
		}
		if err != nil {
			return
		}
	}
}

// join passes the terminal, to write to, and a pipe, to read from, to a caller.
func (s *server) join(c wire.Conn) {
	s.launchMu.Lock()
	defer s.launchMu.Unlock()
	if s.launched == nil {
		c.Send(wire.Reply{Error: "no launched command runs", Code: wire.NotLaunched})
		return
	}
	reader, writer, err := pipe()
	if err != nil {
		c.Send(wire.Reply{Error: err.Error()})
		return
	}
	defer reader.Close()
	// a larger buffer helps, but the kernel may refuse it
	unix.FcntlInt(writer.Fd(), unix.F_SETPIPE_SZ, joinedBuffer) //nolint:errcheck
	if err := c.Pass(reader, s.launched.master); err != nil {
		writer.Close()
		return
	}
	s.launched.add(writer)
}

// joinedBuffer is how many bytes of output a caller may leave unread.
const joinedBuffer = 1 << 20

// shared is a terminal with the callers that have joined it.
type shared struct {
	master       *os.File
	mu           sync.Mutex
	modes        modes.Tracker // of the output so far
	joined       []*os.File
	disconnected bool
}

// add adds a caller, whose terminal first gets the modes that the command has set.
func (t *shared) add(writer *os.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.disconnected || unix.SetNonblock(int(writer.Fd()), true) != nil {
		writer.Close()
		return
	}
	t.joined = append(t.joined, writer)
	if set := t.modes.Set(); len(set) > 0 {
		unix.Write(int(writer.Fd()), set) //nolint:errcheck // the new pipe has room; a caller that is gone is found later
	}
}

// show sends output to the callers that have joined, and disconnects a caller whose buffer is full: the command
// must never wait for a caller.
func (t *shared) show(output []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.modes.Read(output)
	t.joined = slices.DeleteFunc(t.joined, func(w *os.File) bool {
		n, err := unix.Write(int(w.Fd()), output)
		if err == nil && n == len(output) {
			return false
		}
		w.Close()
		return true
	})
}

// disconnect disconnects all callers.
func (t *shared) disconnect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	wire.CloseAll(t.joined)
	t.joined, t.disconnected = nil, true
}
