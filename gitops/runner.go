package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// ErrDryRun is returned by Change on a Git opened for a dry run.
var ErrDryRun = errors.New("not done in a dry run")

// Error is a git command that ended with a status other than zero.
type Error struct {
	Args   []string
	Status int
	Stderr string   // head and tail, escaped, as one line
	Lines  []string // the same, line by line

	interrupted bool // by the terminal's ^C, which all processes there get
}

func (e *Error) Error() string {
	verb := "git"
	for _, a := range e.Args {
		if !strings.HasPrefix(a, "-") {
			verb = "git " + a
			break
		}
	}
	if e.Stderr == "" {
		return fmt.Sprintf("%s: exit status %d", verb, e.Status)
	}
	return fmt.Sprintf("%s: %s", verb, e.Stderr)
}

// Status returns the exit status of a git command's error, -1 if it is no such error.
func Status(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return -1
}

// Git runs git in one place with one environment.
type Git struct {
	Dir    string
	base   func() []string // the environment, as it is when a command starts
	env    []string        // added to it
	config []string        // "-c key=value" pairs given to every command
	memory int64           // bytes that a command may take for data; 0: as many as there are
	Dry    bool
}

// Call is one run of git.
type Call struct {
	Args   []string // without "git"; required
	Env    []string // added to the environment
	Stdin  io.Reader
	Stdout io.Writer
	Limit  int64         // bytes of standard output after which the command is ended; 0: outputLimit
	For    time.Duration // deadline; 0: none but the context's
	// Apart puts git into a process group of its own, for what writes into the user's stores: whoever kills ours as a
	// whole leaves git to see the end of its input, and to clean up.
	Apart bool
}

const (
	// outputLimit bounds what any command may print; what is larger is streamed in pieces.
	outputLimit = 1 << 30
	stderrLimit = 4 << 10
)

// alwaysConfig holds for every command on the host: no hook (a path below a device can hold none),
// no fsmonitor, no housekeeping in the middle of a landing, no remote helper.
var alwaysConfig = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"gc.auto=0",
	"maintenance.auto=false",
	"submodule.recurse=false",
	"advice.graftFileDeprecated=false",
}

// alwaysEnv holds for every command: replacement refs and lazy fetches would let objects lie
// about themselves, optional locks would race the user's own commands. glibc would give the memory of each object back to
// the kernel before git asks for the next one's (mallopt(3)): nine of ten page faults of pack-objects.
var alwaysEnv = []string{
	"MALLOC_TRIM_THRESHOLD_=16777216",
	"MALLOC_MMAP_THRESHOLD_=4194304",
	"LC_ALL=C",
	"GIT_NO_REPLACE_OBJECTS=1",
	"GIT_NO_LAZY_FETCH=1",
	"GIT_OPTIONAL_LOCKS=0",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_LITERAL_PATHSPECS=1",
}

// configParameters holds what "git -c" was given.
const configParameters = "GIT_CONFIG_PARAMETERS"

// isConfigVariable tells the GIT_ variables that say where the user's configuration is; every
// other GIT_ variable is scrubbed, because hooks and aliases run us with theirs set.
func isConfigVariable(name string) bool {
	switch name {
	case "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", configParameters,
		"GIT_CONFIG_COUNT", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH":
		return true
	}
	return strings.HasPrefix(name, "GIT_CONFIG_KEY_") || strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
}

// callerEnvironment is the caller's environment without git's variables, except those of configuration.
func callerEnvironment() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "GIT_") || isConfigVariable(name) {
			env = append(env, v)
		}
	}
	return env
}

// userEnvironment is the caller's, with what holds for every command.
func userEnvironment() []string {
	withLocale := func(v string) bool { return strings.HasPrefix(v, "LC_ALL=") }
	return append(slices.DeleteFunc(callerEnvironment(), withLocale), alwaysEnv...)
}

// newUserGit runs git in dir with the user's own configuration.
func newUserGit(dir string) *Git {
	return &Git{Dir: dir, base: userEnvironment, config: alwaysConfig}
}

// newClosedGit runs git in dir with no configuration but the repository's own, which the host wrote.
// empty is an empty file that stands for the global configuration.
func newClosedGit(dir, empty string) *Git {
	base := func() []string {
		return append([]string{
			"PATH=" + os.Getenv("PATH"),
			"HOME=" + dir,
			"GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_GLOBAL=" + empty,
			"GIT_DIR=" + dir,
			"GIT_ALLOW_PROTOCOL=none",
		}, alwaysEnv...)
	}
	config := append(append([]string(nil), durableConfig...), alwaysConfig...)
	return &Git{Dir: dir, base: base, config: config}
}

// With returns a Git that also has the given variables.
func (g *Git) With(env ...string) *Git {
	c := *g
	c.env = append(append([]string(nil), g.env...), env...)
	return &c
}

// within returns a Git whose commands may take so much memory for data.
func (g *Git) within(memory int64) *Git {
	c := *g
	c.memory = memory
	return &c
}

// Configured returns a Git that also has the given configuration ("key=value").
func (g *Git) Configured(pairs ...string) *Git {
	c := *g
	c.config = append(append([]string(nil), g.config...), pairs...)
	return &c
}

// durableConfig makes git sync all that it writes. By default it trusts that the machine stays up
// for the index, refs and loose objects (core.fsync in git-config(1)). core.fsyncMethod=batch is not used:
// with it, git ends with status 0 even if it could not move loose objects to their place, because a git gc removed the folder.
var durableConfig = []string{"core.fsync=all", "core.fsyncMethod=fsync"}

// Durable returns a Git whose writes survive a power loss.
func (g *Git) Durable() *Git { return g.Configured(durableConfig...) }

// gitProgram is the git that is run, found once and kept: the first on the user's PATH that lies outside of the work tree.
// Without one it is a bare name, which does not start.
var gitProgram = sync.OnceValue(func() string {
	if path, err := hostenv.UserProgram("git"); err == nil {
		return path
	}
	return "git"
})

func (g *Git) command(ctx context.Context, c Call) *exec.Cmd {
	var args []string
	for _, kv := range g.config {
		args = append(args, "-c", kv)
	}
	cmd := exec.CommandContext(ctx, gitProgram(), append(args, c.Args...)...)
	cmd.Dir = g.Dir
	cmd.Env = slices.Concat(g.base(), g.env, c.Env)
	// Asked to end, git removes its lock files; killed, it leaves them behind.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	// A helper of git's that keeps a pipe open must not keep us.
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// Look runs a command that only looks.
func (g *Git) Look(ctx context.Context, c Call) error { return g.run(ctx, c) }

// Change runs a command that changes something.
func (g *Git) Change(ctx context.Context, c Call) error {
	if g.Dry {
		return ErrDryRun
	}
	return g.run(ctx, c)
}

func (g *Git) run(ctx context.Context, c Call) error {
	if c.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.For)
		defer cancel()
	}
	cmd := g.command(ctx, c)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: c.Apart}
	var stderr headTail
	cmd.Stderr = &stderr
	if c.Stdout != nil {
		limit := c.Limit
		if limit == 0 {
			limit = outputLimit
		}
		cmd.Stdout = &cappedWriter{w: c.Stdout, left: limit}
	}
	return callError(ctx, c, g.feed(cmd, c.Stdin), &stderr)
}

// start starts a command and bounds its memory before it is given anything to read.
func (g *Git) start(cmd *exec.Cmd) error {
	err := cmd.Start()
	if err == nil && g.memory > 0 {
		limitMemory(cmd.Process.Pid, g.memory)
	}
	return err
}

// feed runs a command with a reader as its standard input. Unlike [exec.Cmd.Run] it does not wait for a reader
// that says nothing more once the command has ended: such a stream may come from a workspace.
func (g *Git) feed(cmd *exec.Cmd, stdin io.Reader) error {
	if file, whole := stdin.(*os.File); whole || stdin == nil {
		if whole {
			cmd.Stdin = file // git has it all, whatever becomes of us
		}
		if err := g.start(cmd); err != nil {
			return err
		}
		return cmd.Wait()
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := g.start(cmd); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		_, err := io.Copy(in, stdin)
		if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) {
			failed <- err
		}
		in.Close() // after failed: a command that ends well because of it is seen to have been cut short
	}()
	err = cmd.Wait()
	select {
	case cut := <-failed:
		if err == nil {
			err = fmt.Errorf("read its input: %w", cut)
		}
	default:
	}
	return err
}

func callError(ctx context.Context, c Call, err error, stderr *headTail) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("git %s: %w", c.Args[0], ctx.Err())
	case errors.As(err, &exit):
		state, _ := exit.Sys().(syscall.WaitStatus)
		return &Error{c.Args, exit.ExitCode(), stderr.String(), stderr.Lines(), state.Signaled() && state.Signal() == syscall.SIGINT}
	}
	return fmt.Errorf("git %s: %w", c.Args[0], err)
}

// output is Look with the standard output as a string, without a final newline.
func (g *Git) output(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := g.Look(ctx, Call{Args: args, Stdout: &out})
	return strings.TrimSuffix(out.String(), "\n"), err
}

// Records is Look with the NUL-terminated records of the standard output.
func (g *Git) Records(ctx context.Context, c Call) ([]string, error) {
	var out bytes.Buffer
	c.Stdout = &out
	if err := g.Look(ctx, c); err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(out.String(), "\x00")
	if text == "" {
		return nil, nil
	}
	return strings.Split(text, "\x00"), nil
}

// Together runs functions at the same time and returns their errors: git spends most of a short
// command on starting and on reading the index, and several can do that side by side.
func Together(functions ...func() error) error {
	errs := make([]error, len(functions))
	var wg sync.WaitGroup
	for i, f := range functions {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// cappedWriter fails once more than left bytes were written.
type cappedWriter struct {
	w    io.Writer
	left int64
}

// errOutput says that a command printed more than it may.
var errOutput = errors.New("more output than allowed")

func (c *cappedWriter) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		return 0, errOutput
	}
	return c.w.Write(p)
}

// headTail keeps the beginning and the end of what is written to it.
type headTail struct{ head, tail []byte }

func (h *headTail) Write(p []byte) (int, error) {
	n := len(p)
	if room := stderrLimit/2 - len(h.head); room > 0 {
		k := min(room, len(p))
		h.head = append(h.head, p[:k]...)
		p = p[k:]
	}
	h.tail = append(h.tail, p...)
	if over := len(h.tail) - stderrLimit/2; over > 0 {
		h.tail = append([]byte(nil), h.tail[over:]...)
	}
	return n, nil
}

// Lines returns the lines, escaped.
func (h *headTail) Lines() []string {
	lines := strings.Split(strings.TrimSpace(string(h.head)+string(h.tail)), "\n")
	for i := range lines {
		lines[i] = Escape(lines[i])
	}
	return lines
}

func (h *headTail) String() string { return strings.Join(h.Lines(), "; ") }
