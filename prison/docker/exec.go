package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
)

// killPatience is how long a killed command, or the engine in telling of its end, may take.
const killPatience = 10 * time.Second

// endPoll is how often it is asked whether the container of a long command still runs.
const endPoll = 3 * time.Second

// endGrace is for the last of what such a command has said.
const endGrace = time.Second

// killedStatus is the exit status of a command that a prison's end killed.
const killedStatus = 128 + 9

// running is a container in which commands can be executed.
type running struct {
	*engine
	id   string
	user string   // the phantom, as the engine wants a user named
	dir  string   // the host folder of a prison made by Start
	env  []string // what the container's own environment could not know
	end  func() error

	once   sync.Once
	endErr error
}

// Close implements [prison.Prison].
func (r *running) Close() error {
	r.once.Do(func() {
		if r.end != nil {
			r.endErr = r.end()
		}
	})
	return r.endErr
}

// execution is one command that the engine executes.
type execution struct {
	*running
	prison.Process
	id     string
	stream types.HijackedResponse
	said   chan string   // the script's answer, closed without one if it never started
	begun  chan struct{} // closed when the command has the terminal, with its size; nil: nobody wants to know
	out    io.Writer
}

// Exec implements [prison.Prison].
func (r *running) Exec(ctx context.Context, p prison.Process) (int, error) {
	mode := ""
	if p.Terminal != nil {
		mode = modeTerminal
	} else if p.Merged() {
		mode = modeMerged
	}
	return r.runScript(ctx, p, mode)
}

// runScript runs the script that becomes the command, to its end.
func (r *running) runScript(ctx context.Context, p prison.Process, mode string) (int, error) {
	if len(p.Argv) == 0 {
		return 0, errors.New("empty command")
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	x, err := r.begin(ctx, p, becomeScript, mode)
	if err != nil {
		return 0, err
	}
	defer x.stream.Close()
	defer x.closeAtEnd(ctx, x.stream, endPoll)()
	copied := make(chan error, 1)
	go func() { copied <- x.copy() }()
	select {
	case err = <-copied:
	case <-ctx.Done():
		err := x.kill(context.WithoutCancel(ctx))
		x.stream.Close()
		select {
		case <-copied: //nolint:errcheck // we ended it
		case <-time.After(killPatience): // a writer of the caller's blocks
		}
		return 0, errors.Join(ctx.Err(), err)
	}
	if err != nil {
		x.stream.Close() // an engine that has still something to say does not tell of any command's end
		return 0, errors.Join(err, x.kill(ctx))
	}
	return x.result(ctx)
}

// closeAtEnd closes a stream when the container has ended, which is asked now and then: not every runtime that is killed with it
// leaves an engine that does. The function that is returned ends the watch.
func (r *running) closeAtEnd(ctx context.Context, stream types.HijackedResponse, poll time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(poll)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if !r.containerRuns(ctx) {
				time.Sleep(endGrace)
				stream.Close()
				return
			}
		}
	}()
	return cancel
}

// begin has the engine start the script that becomes the command.
func (r *running) begin(ctx context.Context, p prison.Process, script, mode string) (*execution, error) {
	x := &execution{running: r, Process: p, said: make(chan string, 1), out: orDiscard(p.Stdout)}
	env := r.environment(p, p.Terminal)
	options := container.ExecOptions{
		Cmd: command(script, mode, workingDir(p.Dir), p.Argv, env), Env: texts(env), WorkingDir: "/",
		Tty: p.Terminal != nil, AttachStdin: p.Stdin != nil || p.Terminal != nil, AttachStdout: true, AttachStderr: true,
	}
	var err error
	if x.id, err = r.createExec(ctx, options); err != nil {
		return nil, err
	}
	x.stream, err = r.ContainerExecAttach(ctx, x.id, container.ExecAttachOptions{Tty: options.Tty})
	if err != nil {
		return nil, r.lost(ctx, "execute command", err)
	}
	return x, nil
}

// environment is what a process has beside the container's own.
func (r *running) environment(p prison.Process, t *prison.Terminal) []string {
	env := slices.Concat(r.env, p.Env)
	if t == nil {
		return env
	}
	return slices.Concat([]string{"TERM=" + cmp.Or(t.Term, "xterm-256color")}, env)
}

func (r *running) createExec(ctx context.Context, o container.ExecOptions) (string, error) {
	bounded, cancel := call(ctx)
	defer cancel()
	o.User = r.user
	c, err := r.ContainerExecCreate(bounded, r.id, o)
	if err != nil {
		return "", r.lost(ctx, "execute command", err)
	}
	return c.ID, nil
}

// lost explains an error of the engine's about this container.
func (r *running) lost(ctx context.Context, step string, err error) error {
	if gone(err) || notNow(err) {
		return prison.ErrNotRunning
	}
	// Not every engine says it by the kind of its error.
	if !r.containerRuns(ctx) {
		return prison.ErrNotRunning
	}
	return r.failed(ctx, step, err)
}

func workingDir(dir string) string {
	if path.IsAbs(dir) {
		return dir
	}
	return path.Join(prison.Workspace, dir)
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// feed copies the caller's input and ends it. It is not waited for: the input may have no end.
func (x *execution) feed() {
	if x.Stdin != nil {
		io.Copy(x.stream.Conn, x.Stdin) //nolint:errcheck // the command may end before its input
	}
	if x.Terminal == nil { // a terminal has no end of input but the one that is typed
		x.stream.CloseWrite() // nor does it need to know that it ended
	}
}

// result is how the command ended, once its output has.
func (x *execution) result(ctx context.Context) (int, error) {
	answer := <-x.said
	switch what(answer) {
	case saysNotFound:
		return 0, fmt.Errorf("%s: %w", x.Argv[0], prison.ErrNotFound)
	case saysNotExecutable:
		return 0, fmt.Errorf("%s: %w", x.Argv[0], prison.ErrNotExecutable)
	case saysNoFolder:
		return 0, fmt.Errorf("working directory %q: not a folder that can be entered", workingDir(x.Dir))
	case saysNothing:
		return 0, x.neverRan(ctx, answer)
	}
	status, err := x.status(ctx)
	if err == nil && status == killedStatus && !x.alive(ctx) {
		err = prison.ErrNotRunning
	}
	return status, err
}

// what is the kind of an answer. An engine that cannot start the script, as when the container ends just then, says so where
// the script would, and ends the command with a status of its own.
func what(answer string) byte {
	switch answer {
	case string(saysNotFound), string(saysNotExecutable), string(saysNoFolder):
		return answer[0]
	}
	if _, running := sessionOf(answer); running {
		return saysRuns
	}
	return saysNothing
}

// sessionOf is the session of a command that runs.
func sessionOf(answer string) (session int, running bool) {
	number, ok := strings.CutPrefix(answer, string(saysRuns))
	session, err := strconv.Atoi(number)
	return session, ok && err == nil
}

// status asks for the exit status, which the engine may know a moment after the output's end.
func (x *execution) status(ctx context.Context) (int, error) {
	begun := time.Now()
	for wait := 2 * time.Millisecond; ; time.Sleep(wait) {
		bounded, cancel := call(ctx)
		i, err := x.ContainerExecInspect(bounded, x.id)
		cancel()
		if err != nil {
			return 0, x.lost(ctx, "ask for the command's end", err)
		}
		if !i.Running {
			return i.ExitCode, nil
		}
		switch took := time.Since(begun); {
		case took > killPatience:
			return 0, errors.New("the engine does not tell of the command's end")
		case took > endGrace: // it may not know it, of a container that was killed
			if !x.containerRuns(ctx) {
				return 0, prison.ErrNotRunning
			}
			wait = endGrace / 10
		}
	}
}

// neverRan explains why the script said nothing, or what stands here in the place of its answer.
func (x *execution) neverRan(ctx context.Context, answer string) error {
	status, err := x.status(ctx)
	if err != nil {
		return err
	}
	if !x.alive(ctx) {
		return prison.ErrNotRunning
	}
	return fmt.Errorf("the engine could not start a process in the prison: it may have as many, or as much memory, as it is allowed (status %d, %q)", status, answer)
}

// alive makes sure that the container still executes something. What the engine says of its state
// lags behind, so that a command killed with its container would look like one killed inside. One that does
// nothing may be as full of processes as it can be, or have an agent that stops each: then, after a while, what the engine says is true.
func (r *running) alive(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	for deadline := time.Now().Add(endGrace); time.Now().Before(deadline); time.Sleep(endGrace / 10) {
		status, err := r.plain(bounded, []string{defaultSh, "-c", ":"})
		if err == nil && status == 0 {
			return true
		}
		if errors.Is(err, prison.ErrNotRunning) || ctx.Err() != nil {
			return false
		}
	}
	return r.containerRuns(ctx)
}

// containerRuns tells what the engine says of the container; that nothing can be known is no end.
func (r *running) containerRuns(ctx context.Context) bool {
	bounded, cancel := call(ctx)
	defer cancel()
	c, err := r.ContainerInspect(bounded, r.id)
	return !gone(err) && (err != nil || runs(&c))
}

// plain executes a command of ours without input and output.
func (r *running) plain(ctx context.Context, argv []string) (int, error) {
	x := &execution{running: r}
	var err error
	if x.id, err = r.createExec(ctx, container.ExecOptions{Cmd: argv, WorkingDir: "/", AttachStdout: true}); err != nil {
		return 0, err
	}
	x.stream, err = r.ContainerExecAttach(ctx, x.id, container.ExecAttachOptions{})
	if err != nil {
		return 0, r.lost(ctx, "execute command", err)
	}
	defer x.stream.Close()
	defer context.AfterFunc(ctx, x.stream.Close)()
	io.Copy(io.Discard, x.stream.Reader) //nolint:errcheck // its end is all that matters
	return x.status(ctx)
}

// kill kills the command with all of its session. Whether it runs is not known before it has said so.
func (x *execution) kill(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	var answer string
	select {
	case answer = <-x.said:
	case <-bounded.Done():
	}
	session, ran := sessionOf(answer)
	if !ran {
		return nil
	}
	status, err := x.plain(bounded, []string{defaultSh, "-c", killScript, "sh", strconv.Itoa(session)})
	if errors.Is(err, prison.ErrNotRunning) {
		return nil
	}
	if err == nil && status != 0 {
		err = fmt.Errorf("the command may run on: killing it ended with status %d", status)
	}
	return err
}
