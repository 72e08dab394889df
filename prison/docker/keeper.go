package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/hostfile"
)

// The engine hands out a command's terminal once, when it starts it. So a process of ours on the host, the
// keeper, holds it for a launched command: it reads all the time, writes down what is shown, and lets others join
// by a socket in the prison's host folder. If it is killed, the command goes on with nobody to look.
const (
	keeperRole = "terminal" // as the host's process list shows it
	socketName = "terminal.sock"
	logName    = "command.log"
)

// Reexec must be called first in main, and in TestMain of tests. If this process was started as a keeper, it
// does that work and exits; otherwise it returns at once.
func Reexec() {
	if len(os.Args) != 2 || os.Args[0] != keeperRole {
		return
	}
	if err := keep(os.Args[1]); err != nil {
		fmt.Print(err) //nolint:forbidigo // the other end of this pipe is ours
		os.Exit(1)     //nolint:forbidigo // a process of its own
	}
	os.Exit(0) //nolint:forbidigo // a process of its own
}

// order is what a keeper reads from its standard input. Arguments and variables need not be text.
type order struct {
	Container string
	User      string
	Base      [][]byte // see [running]
	Argv, Env [][]byte
	Dir, Term string
	Size      prison.Size
}

func (o order) process() prison.Process {
	return prison.Process{
		Argv: unpackAll(o.Argv), Env: unpackAll(o.Env), Dir: o.Dir, Terminal: &prison.Terminal{Size: o.Size, Term: o.Term},
	}
}

func packAll(texts []string) (packed [][]byte) {
	for _, t := range texts {
		packed = append(packed, []byte(t))
	}
	return packed
}

func unpackAll(packed [][]byte) (texts []string) {
	for _, p := range packed {
		texts = append(texts, string(p))
	}
	return texts
}

const ready = "ready"

// sizePause is between two sizes: Podman's conmon forgets one that comes together with another.
const sizePause = 50 * time.Millisecond

// startKeeper starts the process that starts the command, and returns once it has.
func (r *running) startKeeper(ctx context.Context, p prison.Process) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(order{
		Container: r.id, User: r.user, Base: packAll(r.env), Argv: packAll(p.Argv), Env: packAll(p.Env), Dir: p.Dir,
		Term: p.Terminal.Term, Size: p.Terminal.Size,
	})
	if err != nil {
		return err
	}
	in, inEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	defer inEnd.Close()
	outEnd, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer outEnd.Close()
	defer out.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	process, err := os.StartProcess(self, []string{keeperRole, r.dir}, &os.ProcAttr{
		Dir: "/", Files: []*os.File{in, out, null}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start keeper: %w", err)
	}
	go process.Wait() // should it end before this process, it must not stay as a zombie
	in.Close()
	out.Close()
	go func() {
		inEnd.Write(text) //nolint:errcheck // it then says that the order is broken
		inEnd.Close()
	}()
	defer context.AfterFunc(ctx, func() { outEnd.SetReadDeadline(time.Now()) })() // a pipe knows deadlines
	said, err := io.ReadAll(io.LimitReader(outEnd, small))
	switch {
	case ctx.Err() != nil:
		process.Kill() // it may have ended
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("start keeper: %w", err)
	case string(said) != ready:
		return fmt.Errorf("launch command: %s", said)
	}
	return nil
}

// keep starts the command of an order and stays with it to its end. The folder becomes the working directory, since
// a socket's path must be short.
func keep(dir string) error {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return fmt.Errorf("read order: %w", err)
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	r, err := readRecord(dir)
	if err != nil || r == nil {
		return errors.Join(prison.ErrNotRunning, err)
	}
	e, err := connect(r.Host)
	if err != nil {
		return err
	}
	os.Remove(socketName)                           // a killed keeper's
	listener, err := net.Listen("unix", socketName) //nolint:noctx // a socket of ours needs no name looked up
	if err != nil {
		return err
	}
	defer listener.Close() // which removes it
	log, err := openTail(logName)
	if err != nil {
		return err
	}
	defer log.Close()
	screen := &shared{log: log}
	box := &running{engine: e, id: o.Container, user: o.User, dir: dir, env: unpackAll(o.Base)}
	return box.keepScreen(context.Background(), o.process(), listener, screen)
}

// keepScreen starts a command, shows its screen, and returns when it has ended and everybody has seen that.
func (r *running) keepScreen(ctx context.Context, p prison.Process, listener net.Listener, screen *shared) error {
	typed, keys := io.Pipe()
	p.Stdin, p.Stdout = typed, screen
	x, err := r.begin(ctx, p, launchScript, modeTerminal)
	if err != nil {
		return err
	}
	defer x.stream.Close()
	l := launched{Argv: p.Argv, Exec: x.id}
	if err := hostfile.Write(filepath.Join(r.dir, commandName), l); err != nil {
		return err
	}
	defer x.closeAtEnd(ctx, x.stream, endPoll)()
	x.begun = make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		x.copy() //nolint:errcheck // nothing is wrong with our own writer
	}()
	if answer := <-x.said; what(answer) != saysRuns {
		return errors.New("the engine could not start it")
	}
	select {
	case <-x.begun:
	case <-ended:
	}
	go screen.welcome(listener, keys)
	fmt.Print(ready) //nolint:forbidigo // the other end of this pipe is ours
	os.Stdout.Close()
	<-ended
	if status, err := x.status(ctx); err == nil && r.alive(ctx) {
		l.Exited, l.Status = true, status
		if err := hostfile.Write(filepath.Join(r.dir, commandName), l); err != nil {
			return err
		}
	}
	screen.part()
	return nil
}

// Join implements [prison.Prison].
func (r *running) Join(ctx context.Context, p prison.Process) error {
	l, err := r.state(ctx)
	if err != nil {
		return err
	}
	if l == nil || l.Exited {
		return errors.Join(prison.ErrNotLaunched, r.check(ctx))
	}
	conn, err := dialIn(ctx, r.dir, socketName)
	if err != nil {
		return fmt.Errorf("join the terminal of %q: %w", l.Argv[0], err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	x := &execution{running: r, Process: p, id: l.Exec}
	if t := p.Terminal; t != nil {
		// It is changed in any case, since that is what makes programs draw everything again.
		if t.Size.Rows > 1 {
			x.resize(ctx, prison.Size{Rows: t.Size.Rows - 1, Cols: t.Size.Cols})
			time.Sleep(sizePause)
		}
		x.resize(ctx, t.Size)
		following, stop := context.WithCancel(ctx)
		defer stop()
		go x.follow(following)
	}
	if p.Stdin != nil {
		go io.Copy(conn, p.Stdin) //nolint:errcheck // the command may end before its input
	}
	out := &broken{w: orDiscard(p.Stdout)}
	io.Copy(out, conn) //nolint:errcheck // the end of the terminal, however it comes
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return out.err
}

// Shown implements [prison.Backend].
func (b *Backend) Shown(_ context.Context, s prison.Spec) (io.ReadCloser, error) {
	l, err := readLaunched(s.Dir)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, prison.ErrNotLaunched
	}
	content, err := readTail(filepath.Join(s.Dir, logName))
	return io.NopCloser(bytes.NewReader(content)), err
}

// awaitKeeper waits until a stopped prison's keeper has ended: it must write nothing any more.
func awaitKeeper(ctx context.Context, dir string) error {
	for deadline := time.Now().Add(2 * killPatience); ; time.Sleep(5 * time.Millisecond) {
		conn, err := dialIn(ctx, dir, socketName)
		if err != nil {
			return nil
		}
		conn.Close()
		if time.Now().After(deadline) {
			return errors.New("the keeper of the launched command's terminal does not end")
		}
	}
}
