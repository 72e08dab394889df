package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// running is a prison seen from outside.
type running struct {
	connect func() (conn, error)
	close   func() error
}

func (r *running) Close() error { return r.close() }

// ask connects, sends a request and returns the connection with the descriptors of the first answer.
func (r *running) ask(ctx context.Context, q request) (conn, []*os.File, error) {
	if err := ctx.Err(); err != nil {
		return conn{}, nil, err
	}
	c, err := r.connect()
	if err != nil {
		return conn{}, nil, prison.ErrNotRunning
	}
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Now()) })
	a, files, err := roundTrip(c, q)
	switch {
	case !stop():
		err = ctx.Err()
	case err != nil:
		err = lost(err)
	default:
		err = a.err()
	}
	if err != nil {
		closeAll(files)
		c.Close()
		return conn{}, nil, err
	}
	return c, files, nil
}

func roundTrip(c conn, q request) (a reply, files []*os.File, err error) {
	if err := c.send(q.pack()); err != nil {
		return a, nil, err
	}
	files, err = c.recv(&a)
	return a, files, err
}

// lost reads the end of a connection as the end of the prison.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		return prison.ErrNotRunning
	}
	return err
}

// err returns what an answer says went wrong. The text comes from inside, but from init.
func (a reply) err() error {
	switch {
	case a.Error == "":
		return nil
	case a.Code == codeNotFound:
		return fmt.Errorf("%s: %w", a.Error, prison.ErrNotFound)
	case a.Code == codeNotLaunched:
		return prison.ErrNotLaunched
	case a.Code == codeFlooded:
		return prison.ErrFlooded
	case a.Code == codeNotExecutable:
		return fmt.Errorf("%s: %w", a.Error, prison.ErrNotExecutable)
	}
	return errors.New(a.Error)
}

// pingPatience is how long a prison may take to answer that it is there. Its agent may keep all processors busy.
const pingPatience = 5 * time.Second

func (r *running) ping(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	c, files, err := r.ask(bounded, request{Kind: kindPing})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return prison.ErrFrozen
	}
	if err != nil {
		return err
	}
	closeAll(files)
	return c.Close()
}

func newRequest(kind string, p prison.Process) request {
	q := request{Kind: kind, Argv: p.Argv, Env: p.Env, Dir: p.Dir}
	if t := p.Terminal; t != nil {
		q.Terminal = &terminalRequest{Rows: t.Size.Rows, Cols: t.Size.Cols, Term: t.Term}
		if q.Terminal.Term == "" {
			q.Terminal.Term = "xterm-256color"
		}
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
	c, files, err := r.ask(ctx, newRequest(kindLaunch, p))
	if err != nil {
		return err
	}
	closeAll(files)
	return c.Close()
}

// Watch implements [prison.Prison].
func (r *running) Watch(ctx context.Context, paths []string) (<-chan struct{}, error) {
	c, files, err := r.ask(ctx, request{Kind: kindWatch, Paths: paths})
	if err != nil {
		return nil, err
	}
	closeAll(files)
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
			default: // one is waiting already
			}
		}
	}()
	return changes, nil
}

// Exec implements [prison.Prison].
func (r *running) Exec(ctx context.Context, p prison.Process) (int, error) {
	q := newRequest(kindExec, p)
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
	defer closeAll(ends)
	s, err := connectStreams(p, ends)
	if err != nil {
		return 0, err
	}
	// Closing our sending side is what tells init to kill.
	defer context.AfterFunc(ctx, func() {
		c.closeWrite()
		c.SetReadDeadline(time.Now().Add(killPatience))
	})()
	var a reply
	_, err = c.recv(&a)
	if ctx.Err() != nil {
		s.abandon()
		return 0, ctx.Err()
	}
	copyErr := s.finish()
	if err != nil {
		return 0, lost(err)
	}
	return a.Status, copyErr
}

const (
	// killPatience is how long Exec waits to hear that what it had killed is dead.
	killPatience = 5 * time.Second
	// What a process wrote is in its pipe when it has exited, but what it started may go on to hold
	// the pipe. As long as it writes it may be part of a pipeline, so only silence ends the
	// reading, or a limit for those who never fall silent.
	silence    = 200 * time.Millisecond
	afterwards = 5 * time.Second
)

// copies are those between a process's ends and the caller's readers and writers.
type copies struct {
	outputs []*output
	ended   chan struct{}
	wg      sync.WaitGroup
}

// connectStreams starts copying. The caller's reader may block for ever, so nobody waits for it:
// what it read last is lost when the process has ended.
func connectStreams(p prison.Process, ends []*os.File) (*copies, error) {
	s := &copies{ended: make(chan struct{})}
	next := func() (*os.File, error) {
		if len(ends) == 0 {
			return nil, errors.New("the prison gave too few descriptors")
		}
		f := ends[0]
		ends = ends[1:]
		return f, nil
	}
	if p.Terminal != nil {
		master, err := next()
		if err != nil {
			return nil, err
		}
		s.terminal(p, master)
		return s, nil
	}
	if p.Stdin != nil {
		f, err := next()
		if err != nil {
			return nil, err
		}
		go func() {
			io.Copy(f, p.Stdin) //nolint:errcheck // the command may end before its input
			f.Close()
		}()
	}
	for _, w := range []io.Writer{p.Stdout, p.Stderr} {
		if w == nil {
			continue
		}
		f, err := next()
		if err != nil {
			return nil, err
		}
		s.copyOutput(w, f)
	}
	return s, nil
}

// terminal connects the caller to a pseudo terminal. The line discipline inside makes signals and
// echo; the caller puts its own terminal into raw mode.
func (s *copies) terminal(p prison.Process, master *os.File) {
	if p.Stdin != nil {
		go io.Copy(master, p.Stdin) //nolint:errcheck // the command may end before its input
	}
	out := p.Stdout
	if out == nil {
		out = io.Discard
	}
	s.copyOutput(out, master)
	if p.Terminal.Resize == nil {
		return
	}
	go func() {
		for {
			select {
			case size, ok := <-p.Terminal.Resize:
				if !ok {
					return
				}
				setSize(master, size)
			case <-s.ended:
				return
			}
		}
	}()
}

func setSize(master *os.File, size prison.Size) {
	raw, err := master.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) { //nolint:errcheck // the terminal may be gone
		unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols}) //nolint:errcheck // it stays as it was
	})
}

// output is one stream from the process to the caller.
type output struct {
	from *os.File
	err  error
}

func (s *copies) copyOutput(to io.Writer, from *os.File) {
	o := &output{from: from}
	s.outputs = append(s.outputs, o)
	s.wg.Go(func() { o.run(to, s.ended) })
}

func (o *output) run(to io.Writer, ended <-chan struct{}) {
	buf := make([]byte, 64<<10)
	var limit time.Time // set once the process has exited
	for {
		n, err := o.from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				o.err = fmt.Errorf("copy output: %w", err)
				o.from.Close() // the process gets SIGPIPE, as from any reader that went away
				return
			}
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && limit.IsZero():
			<-ended // finish woke us
			limit = time.Now().Add(afterwards)
		case err != nil, !limit.IsZero() && time.Now().After(limit):
			return // end of file (a terminal says EIO when its last user is gone), or silence
		}
		if !limit.IsZero() {
			o.from.SetReadDeadline(time.Now().Add(silence))
		}
	}
}

// finish is called when the process has exited, and returns when all it wrote is copied.
func (s *copies) finish() error {
	for _, o := range s.outputs {
		o.from.SetReadDeadline(time.Now())
	}
	close(s.ended)
	s.wg.Wait()
	var errs []error
	for _, o := range s.outputs {
		errs = append(errs, o.err)
	}
	return errors.Join(errs...)
}

// abandon returns when nothing is copied any more.
func (s *copies) abandon() {
	for _, o := range s.outputs {
		o.from.Close()
	}
	close(s.ended)
	s.wg.Wait()
}
