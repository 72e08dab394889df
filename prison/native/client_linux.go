package native

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// running is the host's end of a running prison. It sends requests to the prison's init.
type running struct {
	connect func() (wire.Conn, error) // opens a connection to init
	close   func() error              // releases the prison, or ends one made by Open
}

func (r *running) Close() error { return r.close() }

// Own implements [prison.Own]: init is this program.
func (r *running) Own() string { return "/proc/self/exe" }

// ask connects, sends a request and returns the connection, with the descriptors of the first reply.
func (r *running) ask(ctx context.Context, q wire.Request) (wire.Conn, []*os.File, error) {
	if err := ctx.Err(); err != nil {
		return wire.Conn{}, nil, err
	}
	c, err := r.connect()
	if err != nil {
		return wire.Conn{}, nil, prison.ErrNotRunning
	}
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Now()) })
	a, files, err := roundTrip(c, q)
	switch {
	case !stop():
		err = ctx.Err()
	case err != nil:
		err = lost(err)
	default:
		err = a.Err()
	}
	if err != nil {
		wire.CloseAll(files)
		c.Close()
		return wire.Conn{}, nil, err
	}
	return c, files, nil
}

func roundTrip(c wire.Conn, q wire.Request) (a wire.Reply, files []*os.File, err error) {
	if err := c.Send(q.Pack()); err != nil {
		return a, nil, err
	}
	files, err = c.Recv(&a)
	return a, files, err
}

// lost turns the end of a connection into an error for the end of the prison.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		return prison.ErrNotRunning
	}
	return err
}

// pingPatience is how long a prison may take to answer a ping. Its agent may keep all processors busy.
const pingPatience = 5 * time.Second

func (r *running) ping(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	c, files, err := r.ask(bounded, wire.Request{Kind: wire.KindPing})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return prison.ErrFrozen
	}
	if err != nil {
		return err
	}
	wire.CloseAll(files)
	return c.Close()
}

func newRequest(kind string, p prison.Process) wire.Request {
	q := wire.Request{Kind: kind, Argv: p.Argv, Env: p.Env, Dir: p.Dir, Frozen: p.Frozen, Bare: p.Bare}
	if t := p.Terminal; t != nil {
		q.Terminal = &wire.Terminal{Rows: t.Size.Rows, Cols: t.Size.Cols, Term: cmp.Or(t.Term, "xterm-256color")}
	}
	return q
}

// Launch implements [prison.Prison].
func (r *running) Launch(ctx context.Context, p prison.Process) error {
	t := prison.Terminal{}
	if p.Terminal != nil {
		t = *p.Terminal
	}
	if t.Size == (prison.Size{}) {
		t.Size = prison.Size{Rows: 24, Cols: 80}
	}
	p.Terminal = &t
	c, files, err := r.ask(ctx, newRequest(wire.KindLaunch, p))
	if err != nil {
		return err
	}
	wire.CloseAll(files)
	return c.Close()
}

// Watch implements [prison.Prison].
func (r *running) Watch(ctx context.Context, paths []string) (<-chan struct{}, error) {
	c, files, err := r.ask(ctx, wire.Request{Kind: wire.KindWatch, Paths: paths})
	if err != nil {
		return nil, err
	}
	wire.CloseAll(files)
	changes := make(chan struct{}, 1)
	stop := context.AfterFunc(ctx, func() { c.Close() })
	go func() {
		defer close(changes)
		defer stop()
		defer c.Close()
		buf := make([]byte, 64)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			select {
			case changes <- struct{}{}:
			default: // a notification is pending already
			}
		}
	}()
	return changes, nil
}

// Exec implements [prison.Prison].
func (r *running) Exec(ctx context.Context, p prison.Process) (int, error) {
	q := newRequest(wire.KindExec, p)
	if p.Terminal == nil {
		q.Stdin, q.Stdout, q.Stderr = p.Stdin != nil, p.Stdout != nil, p.Stderr != nil
		if q.Merged = p.Merged(); q.Merged {
			p.Stderr, q.Stderr = nil, false
		}
	}
	c, ends, err := r.ask(ctx, q)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	defer wire.CloseAll(ends)
	s, err := connectStreams(p, ends)
	if err != nil {
		return 0, err
	}
	// Init kills the process when our sending side is closed.
	defer context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), prison.ErrHungUp) {
			c.HangUp()
		}
		c.CloseWrite()
		c.SetReadDeadline(time.Now().Add(prison.HangupGrace + wire.KillPatience))
	})()
	var a wire.Reply
	_, err = c.Recv(&a)
	if ctx.Err() != nil {
		s.abandon()
		return 0, ctx.Err()
	}
	copyErr := s.finish()
	if err != nil {
		return 0, lost(err)
	}
	if copyErr != nil {
		return 0, &prison.OutputLost{Err: copyErr, Status: a.Status, Ended: true}
	}
	return a.Status, nil
}

// afterwards is how long the output of other processes is still read after the process has exited.
const afterwards = 5 * time.Second

// copies are the running copies between the ends of a process and the caller's readers and writers.
type copies struct {
	outputs []*output
	ended   chan struct{}
	wg      sync.WaitGroup
}

// connectStreams starts copying. No caller waits for the copy of p.Stdin, since its Read may block for ever. Input that was read after
// the process ended is lost.
func connectStreams(p prison.Process, ends []*os.File) (*copies, error) {
	s := &copies{ended: make(chan struct{})}
	outputs := slices.DeleteFunc([]io.Writer{p.Stdout, p.Stderr}, func(w io.Writer) bool { return w == nil })
	wanted := len(outputs)
	switch {
	case p.Terminal != nil:
		wanted = 1
	case p.Stdin != nil:
		wanted++
	}
	if len(ends) < wanted {
		return nil, errors.New("the prison gave too few descriptors")
	}
	if p.Terminal != nil {
		s.terminal(p, ends[0])
		return s, nil
	}
	if p.Stdin != nil {
		stdin := ends[0]
		ends = ends[1:]
		go func() {
			io.Copy(stdin, p.Stdin) //nolint:errcheck // the command may end before its input
			stdin.Close()
		}()
	}
	for i, w := range outputs {
		s.copyOutput(w, ends[i])
	}
	return s, nil
}

// terminal connects the caller to a pseudo terminal. The line discipline inside handles signals and echo, so the
// caller must put its own terminal into raw mode.
func (s *copies) terminal(p prison.Process, master *os.File) {
	if p.Stdin != nil {
		go io.Copy(master, p.Stdin) //nolint:errcheck // the command may end before its input
	}
	s.copyOutput(cmp.Or(p.Stdout, io.Discard), master)
	go resize(master, p.Terminal.Resize, s.ended)
}

// resize sets the size of a terminal to each size that it receives, until ended is closed.
func resize(master *os.File, sizes <-chan prison.Size, ended <-chan struct{}) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				return
			}
			setSize(master, size)
		case <-ended:
			return
		}
	}
}

func setSize(master *os.File, size prison.Size) {
	raw, err := master.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) { //nolint:errcheck // the terminal may be closed
		// on failure the size does not change
		unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols}) //nolint:errcheck
	})
}

// output is a stream from the process to the caller.
type output struct {
	from *os.File
	err  error
}

func (s *copies) copyOutput(to io.Writer, from *os.File) {
	o := &output{from: from}
	s.outputs = append(s.outputs, o)
	s.wg.Go(func() { o.run(to, s.ended) })
}

// outputBuffers are buffers for the output of processes. They are used again, since each promotion cycle runs several processes.
var outputBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

func (o *output) run(to io.Writer, ended <-chan struct{}) {
	buf := outputBuffers.Get().(*[64 << 10]byte)
	defer outputBuffers.Put(buf)
	var limit time.Time // set once the process has exited
	for {
		n, err := o.from.Read(buf[:])
		if errors.Is(err, os.ErrDeadlineExceeded) && !limit.IsZero() {
			n, err = readAnyway(o.from, buf[:])
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				o.err = err
				o.from.Close() // the process gets SIGPIPE, as with any reader that has closed the pipe
				return
			}
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && limit.IsZero():
			<-ended // finish set the deadline
			limit = time.Now().Add(afterwards)
		case err != nil, !limit.IsZero() && time.Now().After(limit):
			return // end of file (EIO for a terminal whose last user has closed it), or silence
		}
		if !limit.IsZero() {
			o.from.SetReadDeadline(time.Now().Add(wire.Silence))
		}
	}
}

// readAnyway reads without waiting, although the deadline of the file has passed. [os.File.Read] would return an error and read nothing,
// so the end of the output would be lost when the deadline passes before the call.
func readAnyway(f *os.File, buf []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), buf) })
	switch {
	case controlErr != nil:
		return 0, controlErr
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// finish must be called when the process has exited. It returns when all output of the process is copied.
func (s *copies) finish() error {
	for _, o := range s.outputs {
		o.from.SetReadDeadline(time.Now())
	}
	close(s.ended)
	s.wg.Wait()
	var all error
	for _, o := range s.outputs {
		all = errors.Join(all, o.err)
	}
	return all
}

// abandon stops copying, and returns when all copying has ended.
func (s *copies) abandon() {
	for _, o := range s.outputs {
		o.from.Close()
	}
	close(s.ended)
	s.wg.Wait()
}

// Join implements [prison.Prison].
func (r *running) Join(ctx context.Context, p prison.Process) error {
	c, ends, err := r.ask(ctx, wire.Request{Kind: wire.KindJoin})
	if err != nil {
		return err
	}
	defer c.Close()
	defer wire.CloseAll(ends)
	if len(ends) != 2 {
		return errors.New("the prison gave too few descriptors")
	}
	shown, master := ends[0], ends[1]
	done := make(chan struct{})
	defer close(done)
	defer context.AfterFunc(ctx, func() { shown.SetReadDeadline(time.Now()) })()
	if p.Stdin != nil {
		go io.Copy(master, p.Stdin) //nolint:errcheck // the command may end before its input
	}
	if p.Terminal != nil {
		followSize(master, *p.Terminal, done)
	}
	_, err = io.Copy(cmp.Or(p.Stdout, io.Discard), shown)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// followSize sets the size of a terminal to the size of the caller's terminal. It sets another size first, since programs redraw their
// screen only when the size changes.
func followSize(master *os.File, t prison.Terminal, done <-chan struct{}) {
	if t.Size.Rows > 1 {
		setSize(master, prison.Size{Rows: t.Size.Rows - 1, Cols: t.Size.Cols})
	}
	setSize(master, t.Size)
	go resize(master, t.Resize, done)
}
