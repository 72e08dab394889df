package inside

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/apart"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/hostfile"
)

// The engine passes out the terminal of a command only once, when it starts the command. For a launched command, a
// process of this program on the host, the keeper, holds the terminal. The keeper always reads from it, writes the
// output to a log, and lets others join through a socket in the prison's host folder. If the keeper is killed, the
// command continues, but nobody can join it.
const (
	keeperRole = "terminal" // its name in the host's process list

	// Files in the prison's host folder.
	socketName  = "terminal.sock"
	logName     = "command.log"
	commandName = "command.json"
)

// KeeperFiles returns the names of the files that a launched command leaves in the prison's host folder.
func KeeperFiles() []string {
	return []string{commandName, logName, logName + oldSuffix, logName + timesSuffix, socketName}
}

// Reexec must be the first call in main, and in TestMain of tests. If this process was started as a keeper, or as [EmptyProgram], Reexec
// does that work and exits. Otherwise it returns at once.
func Reexec() {
	if len(os.Args) == 2 && os.Args[0] == EmptyProgram {
		empty(os.Args[1])
	}
	if len(os.Args) != 2 || os.Args[0] != keeperRole {
		return
	}
	if err := keep(os.Args[1]); err != nil {
		fmt.Print(err) //nolint:forbidigo // the parent reads the other end of this pipe
		os.Exit(1)     //nolint:forbidigo // this process is only a keeper
	}
	os.Exit(0) //nolint:forbidigo // this process is only a keeper
}

// order is what the keeper reads from its standard input. Arguments and variables are bytes, since they need not be text.
type order struct {
	Host      string   // address of the engine
	Container string   // id of the container
	User      string   // see [Container]
	Base      [][]byte // see [Container]
	Variables bool     // see [Container]
	Recorded  bool     // see [Container]
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

// sizePause is the time between two changes of the size, so that Podman does not drop the second one, see sizePauses.
const sizePause = 50 * time.Millisecond

// startKeeper starts a keeper, which starts the command, and returns once the command has started.
func (r *Container) startKeeper(ctx context.Context, p prison.Process) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(order{
		Host: r.Host, Container: r.ID, User: r.User, Base: packAll(r.Base), Variables: r.Variables, Recorded: r.Recorded, Argv: packAll(p.Argv), Env: packAll(p.Env), Dir: p.Dir,
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
	process, err := apart.Start(self, []string{keeperRole, r.HostDir}, &os.ProcAttr{Dir: "/", Files: []*os.File{in, out, nil}})
	if err != nil {
		return fmt.Errorf("start keeper: %w", err)
	}
	go process.Wait() // a keeper that ends before this process must not stay a zombie
	in.Close()
	out.Close()
	go func() {
		inEnd.Write(text) //nolint:errcheck // on failure, the keeper reports that the order is broken
		inEnd.Close()
	}()
	defer context.AfterFunc(ctx, func() { outEnd.SetReadDeadline(time.Now()) })() // a pipe supports deadlines
	said, err := io.ReadAll(io.LimitReader(outEnd, dialect.Small))
	switch {
	case ctx.Err() != nil:
		process.Kill() // the keeper may have ended
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("start keeper: %w", err)
	case string(said) != ready:
		return fmt.Errorf("launch command: %s", said)
	}
	return nil
}

// keep starts the command of an order, and returns when the command has ended. dir becomes the working directory, since the path of a
// socket must be short.
func keep(dir string) error {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return fmt.Errorf("read order: %w", err)
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	e, err := dialect.Connect(o.Host)
	if err != nil {
		return err
	}
	os.Remove(socketName)                           // a keeper that was killed has left it
	listener, err := net.Listen("unix", socketName) //nolint:noctx // a unix socket needs no name resolution
	if err != nil {
		return err
	}
	defer listener.Close() // also removes the socket
	log, err := openTail(logName)
	if err != nil {
		return err
	}
	defer log.Close()
	screen := &shared{log: log}
	box := &Container{Engine: e, ID: o.Container, User: o.User, HostDir: dir, Base: unpackAll(o.Base), Variables: o.Variables, Recorded: o.Recorded}
	return box.keepScreen(context.Background(), o.process(), listener, screen)
}

// keepScreen starts a command and shows its terminal to callers that join. It returns when the command has ended and all of them have
// received the output.
func (r *Container) keepScreen(ctx context.Context, p prison.Process, listener net.Listener, screen *shared) error {
	typed, keys := io.Pipe()
	p.Stdin, p.Stdout = typed, screen
	x, err := r.begin(ctx, p, launchScript, modeTerminal)
	if err != nil {
		return err
	}
	defer x.stream.Close()
	l := Launched{Argv: p.Argv, Exec: x.id}
	if err := hostfile.Write(filepath.Join(r.HostDir, commandName), l); err != nil {
		return err
	}
	defer x.closeAtEnd(ctx, x.stream, endPoll)()
	x.begun = make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		x.copy() //nolint:errcheck // writes to screen do not fail
	}()
	if answer := <-x.said; what(answer) != saysRuns {
		return errors.New("the engine could not start it")
	}
	select {
	case <-x.begun:
	case <-ended:
	}
	go screen.welcome(listener, keys)
	fmt.Print(ready) //nolint:forbidigo // the parent reads the other end of this pipe
	os.Stdout.Close()
	<-ended
	if status, err := x.status(ctx); err == nil && r.alive(ctx) {
		l.Exited, l.Status = true, status
		if err := hostfile.Write(filepath.Join(r.HostDir, commandName), l); err != nil {
			return err
		}
	}
	screen.disconnect()
	return nil
}

// Join implements [prison.Prison].
func (r *Container) Join(ctx context.Context, p prison.Process) error {
	l, err := r.State(ctx)
	if err != nil {
		return err
	}
	if l == nil || l.Exited {
		return errors.Join(prison.ErrNotLaunched, r.check(ctx))
	}
	conn, err := dialIn(ctx, r.HostDir)
	if err != nil {
		return fmt.Errorf("join the terminal of %q: %w", l.Argv[0], err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	x := &execution{Container: r, Process: p, id: l.Exec}
	if t := p.Terminal; t != nil {
		// The size is always changed, since programs redraw their screen only when it changes.
		if t.Size.Rows > 1 {
			x.resize(ctx, prison.Size{Rows: t.Size.Rows - 1, Cols: t.Size.Cols})
			time.Sleep(sizePause)
		}
		x.resize(ctx, t.Size)
		following, stop := context.WithCancel(ctx)
		defer stop()
		go x.passSizes(following, t.Size)
	}
	if p.Stdin != nil {
		go io.Copy(conn, p.Stdin) //nolint:errcheck // the command may end before its input
	}
	out := &broken{w: cmp.Or(p.Stdout, io.Discard)}
	io.Copy(out, conn) //nolint:errcheck // any error means the end of the terminal
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return out.err
}

// AwaitKeeper waits until the keeper of a stopped prison has ended. From then on it writes nothing.
func AwaitKeeper(ctx context.Context, dir string) error {
	for deadline := time.Now().Add(2 * dialect.KillPatience); ; time.Sleep(5 * time.Millisecond) {
		conn, err := dialIn(ctx, dir)
		if err != nil {
			return nil
		}
		conn.Close()
		if time.Now().After(deadline) {
			return errors.New("the keeper of the launched command's terminal does not end")
		}
	}
}
