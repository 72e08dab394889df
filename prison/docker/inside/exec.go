// Package inside runs programs in a container, with their streams and terminals. A command is started by a shell script. The launched
// command has a keeper, which holds its terminal. The package also watches files. Begin reading at [Container.Exec].
package inside

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
	"sync/atomic"
	"time"

	"github.com/git-airlock/git-airlock/gitops/ticks"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/image"
	"github.com/git-airlock/git-airlock/prison/watch/containers"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
)

// endPoll is the interval for checking whether the container of a long command still runs.
const endPoll = 3 * time.Second

// endGrace is how long the last output of such a command is read after its container has ended.
const endGrace = time.Second

// KilledStatus is the exit status of a command that was killed because the prison ended.
const KilledStatus = 128 + 9

// unstartedStatus is the exit status that an engine reports for a command that its runtime could not start. The script never ends with
// that status before it becomes the command.
const unstartedStatus = 126

// lostStatus is the exit status that an engine reports for a command whose container ended before it under gVisor's runtime. A command can
// end with that status by itself, too.
const lostStatus = 128

// Container is a container in which commands can be executed. It implements [prison.Prison].
type Container struct {
	*dialect.Engine
	ID   string
	User string // the user of commands, in the engine's format
	// the prison's folder on the host; empty for a prison not made by Start, which cannot launch a command
	HostDir   string
	Base      []string     // variables that the container's own environment does not contain
	Variables bool         // whether variables were passed into the container, see [GiveVariables]
	Recorded  bool         // whether the programs of commands are recorded, see package containers
	End       func() error // called by each Close to end the container; may be nil
}

// Close implements [prison.Prison].
func (r *Container) Close() error {
	if r.End == nil {
		return nil
	}
	return r.End()
}

// execution is one command that the engine executes.
type execution struct {
	*Container
	prison.Process
	id     string // the engine's id of the command
	stream types.HijackedResponse
	answer string        // from said, for session
	said   chan string   // receives the script's answer; closed without one if the script never started
	begun  chan struct{} // closed when the command's terminal has its size, and the command begins; may be nil
	out    io.Writer
	torn   atomic.Bool // the runtime has lost the command, see [withoutLoss]
}

// Exec implements [prison.Prison].
func (r *Container) Exec(ctx context.Context, p prison.Process) (int, error) {
	mode := ""
	if p.Terminal != nil {
		mode = modeTerminal
	} else if p.Merged() {
		mode = modeMerged
	}
	return r.runScript(ctx, p, mode)
}

// errUnstarted reports that the engine could not start the script, although it could start another command after it.
var errUnstarted = errors.New("the engine could not start a process in the prison: it may have as many, or as much memory, as it is allowed, or the agent ends each one")

// runScript runs the script that becomes the command, and waits for its end. On a busy machine the engine's runtime sometimes fails once
// for no reason. A command that has not begun is tried once more, unless a part of its input may be lost.
func (r *Container) runScript(ctx context.Context, p prison.Process, mode string) (int, error) {
	status, err := r.runOnce(ctx, p, mode)
	if errors.Is(err, errUnstarted) && (p.Stdin == nil || p.Terminal != nil) {
		status, err = r.runOnce(ctx, p, mode)
	}
	return status, err
}

func (r *Container) runOnce(ctx context.Context, p prison.Process, mode string) (int, error) {
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
	go func() {
		defer close(copied)
		copied <- x.copy()
	}()
	select {
	case err = <-copied:
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), prison.ErrHungUp) {
			x.hangUp(context.WithoutCancel(ctx), copied)
		}
		err := x.kill(context.WithoutCancel(ctx))
		x.stream.Close()
		select {
		case <-copied: //nolint:errcheck // closing the stream has ended it
		case <-time.After(dialect.KillPatience): // a writer of the caller blocks
		}
		return 0, errors.Join(ctx.Err(), err)
	}
	if err != nil {
		x.stream.Close() // an engine with unread output does not report the end of any command
		return 0, errors.Join(&prison.OutputLost{Err: err}, x.kill(ctx))
	}
	return x.result(ctx)
}

// closeAtEnd closes a stream when the container has ended. It checks from time to time, since under some runtimes
// the engine does not close the stream itself when the container is killed. The returned function stops the checks.
func (r *Container) closeAtEnd(ctx context.Context, stream types.HijackedResponse, poll time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for range ticks.Each(ctx.Done(), poll) {
			if runs, _ := r.running(ctx); !runs {
				time.Sleep(endGrace)
				stream.Close()
				return
			}
		}
	}()
	return cancel
}

// begin makes the engine start the script that becomes the command.
func (r *Container) begin(ctx context.Context, p prison.Process, script, mode string) (*execution, error) {
	x := &execution{Container: r, Process: p, said: make(chan string, 1), out: cmp.Or(p.Stdout, io.Discard)}
	env := p.Env // the variables of the process itself
	if t := p.Terminal; t != nil {
		env = slices.Concat([]string{"TERM=" + cmp.Or(t.Term, "xterm-256color")}, env)
	}
	prelude, args := encode(p.Argv, slices.Concat(r.Base, env))
	if r.Variables && !p.Bare {
		prelude = loadVariables(env) + prelude
	}
	options := container.ExecOptions{
		Cmd: command(prelude+startScript+script, mode, workingDir(p.Dir), args), Env: texts(slices.Concat(r.Base, env)), WorkingDir: "/",
		Tty: p.Terminal != nil, AttachStdin: p.Stdin != nil || p.Terminal != nil, AttachStdout: true, AttachStderr: true,
	}
	var err error
	x.id, x.stream, err = r.execute(ctx, options)
	return x, err
}

// lost returns [prison.ErrNotRunning] instead of an engine's error if the container has ended.
func (r *Container) lost(ctx context.Context, step string, err error) error {
	// Not every engine marks that error with a kind.
	if dialect.Gone(err) || r.ended(ctx) {
		return prison.ErrNotRunning
	}
	return r.Failed(ctx, step, err)
}

func workingDir(dir string) string {
	if path.IsAbs(dir) {
		return dir
	}
	return path.Join(prison.Workspace, dir)
}

// feed copies the caller's input and then closes the command's input. No function waits for feed, since the caller's input may have no
// end.
func (x *execution) feed() {
	if x.Stdin != nil {
		io.Copy(x.stream.Conn, x.Stdin) //nolint:errcheck // the command may end before its input
	}
	if x.Terminal == nil { // only the user ends a terminal's input, by typing
		x.stream.CloseWrite() // an error does not matter: the command may have ended
	}
}

// result returns how the command ended, after its output has ended.
func (x *execution) result(ctx context.Context) (int, error) {
	answer := <-x.said
	switch what(answer) {
	case saysNotFound:
		return 0, fmt.Errorf("%s: %w", x.Argv[0], prison.ErrNotFound)
	case saysNotExecutable:
		return 0, fmt.Errorf("%s: %w", x.Argv[0], prison.ErrNotExecutable)
	case saysNoFolder:
		return 0, fmt.Errorf("working directory %q: not a folder that can be entered", workingDir(x.Dir))
	case saysNoVariables:
		return 0, restarted("the variables that were passed in are gone")
	case saysNothing:
		return 0, x.neverRan(ctx, answer)
	}
	status, err := x.status(ctx)
	if err == nil && (status == KilledStatus || x.torn.Load()) && !x.alive(ctx) {
		err = x.why(ctx)
	}
	return status, err
}

// why returns the error for a command that ended with its container.
func (r *Container) why(ctx context.Context) error {
	if c, err := r.Inspect(ctx, r.ID); err == nil && OutOfMemory(&c) {
		return fmt.Errorf("the memory limit has ended the whole prison: %w", prison.ErrNotRunning)
	}
	return prison.ErrNotRunning
}

// what returns the kind of an answer. If an engine cannot start the script, for example because the container is ending, it prints an
// error in place of the answer, and the command ends with a status of the engine's.
func what(answer string) byte {
	switch answer {
	case string(saysNotFound), string(saysNotExecutable), string(saysNoFolder), string(saysNoVariables):
		return answer[0]
	}
	if _, running := sessionOf(answer); running {
		return saysRuns
	}
	return saysNothing
}

// sessionOf returns the session of a running command.
func sessionOf(answer string) (session int, running bool) {
	number, ok := strings.CutPrefix(answer, string(saysRuns))
	session, err := strconv.Atoi(number)
	return session, ok && err == nil
}

// status returns the exit status, which the engine may know only a moment after the output has ended.
func (x *execution) status(ctx context.Context) (int, error) {
	begun := time.Now()
	for wait := 2 * time.Millisecond; ; time.Sleep(wait) {
		bounded, cancel := dialect.Call(ctx)
		i, err := x.ContainerExecInspect(bounded, x.id)
		cancel()
		if err != nil {
			return 0, x.lost(ctx, "ask for the command's end", err)
		}
		if !i.Running {
			return i.ExitCode, nil
		}
		switch took := time.Since(begun); {
		case took > dialect.KillPatience:
			return 0, errors.New("the engine does not tell of the command's end")
		case took > endGrace: // the engine may not know the status if the container was killed
			if runs, _ := x.running(ctx); !runs {
				return 0, prison.ErrNotRunning
			}
			wait = endGrace / 10
		}
	}
}

// neverRan returns the reason why the script sent no valid answer.
func (x *execution) neverRan(ctx context.Context, answer string) error {
	status, err := x.status(ctx)
	if err != nil {
		return err
	}
	if !x.alive(ctx) {
		return prison.ErrNotRunning
	}
	err = fmt.Errorf("%w (status %d, %q)", errUnstarted, status, answer)
	if status != unstartedStatus { // the script began
		err = errors.New(err.Error())
	}
	return err
}

// alive reports whether the container can still execute a command. The engine reports a changed state late, so it cannot distinguish a
// command that was killed with its container from one that was killed inside. If nothing can be executed, the container has ended, has
// reached its limit of processes, or has an agent that stops each process.
func (r *Container) alive(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, dialect.KillPatience)
	defer cancel()
	for deadline := time.Now().Add(endGrace); time.Now().Before(deadline); time.Sleep(endGrace / 10) {
		status, err := r.Plain(bounded, []string{Shell, "-c", ":"})
		if err == nil && status == 0 {
			return true
		}
		if errors.Is(err, prison.ErrNotRunning) || ctx.Err() != nil {
			return false
		}
	}
	return !r.ended(ctx)
}

// ended reports whether the container has ended, after a command has failed. For seconds, the engine may report that a container runs
// although its first process has ended. If this kernel does not show that process, ended waits for the engine.
func (r *Container) ended(ctx context.Context) bool {
	for begun := time.Now(); ; time.Sleep(endGrace / 10) {
		runs, first := r.running(ctx)
		switch {
		case !runs:
			return true
		case first == 0, containers.Runs(r.ID, first), time.Since(begun) > dialect.KillPatience:
			return false
		}
	}
}

// running returns the engine's answer about the container: whether it runs, and the process id of its first process. If the engine does not
// answer, the results are true and zero.
func (r *Container) running(ctx context.Context) (runs bool, first int) {
	c, err := r.Inspect(ctx, r.ID)
	if err != nil || !Runs(&c) {
		return err != nil && !dialect.Gone(err), 0
	}
	return true, c.State.Pid
}

// Plain executes one of our commands without input and output. It tries for a moment to start it, as [Container.runScript] does.
func (r *Container) Plain(ctx context.Context, argv []string) (status int, err error) {
	for begun := time.Now(); ; time.Sleep(endGrace / 10) {
		status, err = r.plainOnce(ctx, argv)
		if err != nil || status != unstartedStatus || time.Since(begun) > endGrace {
			return status, err
		}
	}
}

func (r *Container) plainOnce(ctx context.Context, argv []string) (int, error) {
	x := &execution{Container: r}
	var err error
	if x.id, x.stream, err = r.execute(ctx, container.ExecOptions{Cmd: argv, WorkingDir: "/", AttachStdout: true}); err != nil {
		return 0, err
	}
	defer x.stream.Close()
	defer context.AfterFunc(ctx, x.stream.Close)()
	io.Copy(io.Discard, x.stream.Reader) //nolint:errcheck // only the end of the output matters
	return x.status(ctx)
}

// hangUp sends SIGHUP to the command and everything in its session. It returns when their output has ended, and after
// [prison.HangupGrace] at the latest.
func (x *execution) hangUp(ctx context.Context, copied <-chan error) {
	bounded, cancel := context.WithTimeout(ctx, prison.HangupGrace)
	defer cancel()
	if session, ran := x.session(bounded); ran {
		x.Plain(bounded, []string{Shell, "-c", hangupScript, "sh", session}) //nolint:errcheck // the session is killed next
		select {
		case <-copied: //nolint:errcheck // the command was told to end
		case <-bounded.Done():
		}
	}
}

// session waits for the script's answer, and returns the session in it.
func (x *execution) session(ctx context.Context) (session string, ran bool) {
	if x.answer == "" {
		select {
		case x.answer = <-x.said:
		case <-ctx.Done():
		}
	}
	number, ran := sessionOf(x.answer)
	return strconv.Itoa(number), ran
}

// kill kills the command and everything in its session.
func (x *execution) kill(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, dialect.KillPatience)
	defer cancel()
	session, ran := x.session(bounded)
	if !ran {
		return nil
	}
	status, err := x.Plain(bounded, []string{Shell, "-c", killScript, "sh", session})
	if errors.Is(err, prison.ErrNotRunning) {
		return nil
	}
	if err == nil && status != 0 {
		err = fmt.Errorf("the command may run on: killing it ended with status %d", status)
	}
	return err
}

// OfImage returns what a prison's image defines: its variables, as NAME=VALUE, and the folders of its volumes, except those
// that the prison replaces by its own. It reads the image from which the container was created, even if the name of the image
// now refers to another one.
func (r *Container) OfImage(ctx context.Context) (env, volumes []string, err error) {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	c, err := r.ContainerInspect(bounded, r.ID)
	if err != nil {
		return nil, nil, r.lost(ctx, "look at container", err)
	}
	i, err := r.ImageInspect(bounded, c.Image)
	if err != nil {
		return nil, nil, r.Failed(ctx, "look at image", err)
	}
	if i.Config == nil {
		return nil, nil, nil
	}
	return i.Config.Env, slices.DeleteFunc(image.Volumes(i), image.Reserved), nil
}

// Runs reports whether an inspected container runs.
func Runs(c *container.InspectResponse) bool { return c != nil && c.State != nil && c.State.Running }

// OutOfMemory reports whether an inspected container has ended because memory ran out. That happens under a runtime with a kernel of its
// own, which ends as a whole. The engine says the same of a container in which this machine's kernel has killed a single process.
func OutOfMemory(c *container.InspectResponse) bool {
	return c != nil && c.State != nil && !c.State.Running && c.State.OOMKilled && c.HostConfig != nil && dialect.OwnKernel(cmp.Or(c.HostConfig.Runtime, "runc"))
}
