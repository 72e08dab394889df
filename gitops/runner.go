package gitops

import (
	"bytes"
	"cmp"
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

	"github.com/git-airlock/git-airlock/gitops/busy"
	"github.com/git-airlock/git-airlock/gitops/confighook"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// ErrDryRun is returned by Change on a Git that was opened for a dry run.
var ErrDryRun = errors.New("not done in a dry run")

// Error is the error of a git command that exited with a status other than zero.
type Error struct {
	Args   []string
	Status int
	Lines  []string // the first and last lines of standard error, escaped

	signal syscall.Signal // that ended it, or -1; SIGINT is ^C, which all processes of the terminal receive
}

func (e *Error) Error() string {
	verb := "git"
	if i := slices.IndexFunc(e.Args, func(a string) bool { return !strings.HasPrefix(a, "-") }); i >= 0 {
		verb += " " + e.Args[i]
	}
	ended := fmt.Sprintf("exit status %d", e.Status)
	switch {
	case e.signal == syscall.SIGXCPU:
		ended = "it needs more processor time than allowed"
	case e.signal > 0:
		ended = e.signal.String()
	}
	return fmt.Sprintf("%s: %s", verb, cmp.Or(e.Said(), ended))
}

// Said returns what git wrote to standard error, in one line.
func (e *Error) Said() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(e.Lines), func(line string) bool { return line == "" }), "; ")
}

// Status returns the exit status in the error of a git command, or -1 for any other error.
func Status(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return -1
}

// Crashed reports whether a git command ended by a signal that nobody sends to end a program, or because it got no memory. The same command
// would end in the same way again: git has a fault, or not enough memory or time for it.
func Crashed(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return Spent(err) || ok && OutOfMemory(e) || ok && e.signal > 0 && !slices.Contains([]syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE}, e.signal)
}

// Spent reports whether a git command ended, or did not start, because of its processor time (see [Git.WithProcessor] and [busy.Budget]).
func Spent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	_, over := errors.AsType[*busy.Error](err)
	return over || ok && e.signal == syscall.SIGXCPU
}

// Git runs git in one folder with one environment.
type Git struct {
	Dir    string
	base   func() []string   // returns the environment at the time when a command starts
	env    []string          // variables added to it
	config []string          // "-c key=value" pairs given to every command
	hooks  *confighook.Hooks // nil if the user's configuration is not read
	memory int64             // bytes that a command may allocate; 0: no limit
	meter  *busy.Meter       // processor time that a command may use; nil: no limit
	Dry    bool
}

// Call is one run of git.
type Call struct {
	Args   []string // arguments without "git"; required
	Env    []string // added to the environment
	Stdin  io.Reader
	Stdout io.Writer
	Limit  int64         // bytes of standard output after which the command is killed; 0: outputLimit
	For    time.Duration // time limit; 0: only the context's
	// Apart runs git in a process group of its own. It is meant for commands that write into the user's object
	// store: if our process group is killed, git sees the end of its input and cleans up.
	Apart bool
}

const (
	// outputLimit is the largest output of any command. Callers stream larger data in pieces.
	outputLimit = 1 << 30
	stderrLimit = 4 << 10
	noMailmap   = "log.mailmap=false"
)

// readLogs has settings for what the program reads of git log. A .mailmap with many lines takes minutes, and none of our formats needs it. Without an
// encoding here, git converts its whole output, with the ids and separators, to the user's i18n.logOutputEncoding or i18n.commitEncoding.
var readLogs = []string{noMailmap, "i18n.logOutputEncoding=UTF-8"}

// alwaysConfig applies to every command on the host. Git runs no hooks (a path below a device cannot contain any), no fsmonitor, no gc in the middle
// of a landing, no remote helper, and no git in the folder of a submodule for a diff.
var alwaysConfig = append([]string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"gc.auto=0",
	"maintenance.auto=false",
	"submodule.recurse=false",
	"diff.submodule=short",
	"advice.graftFileDeprecated=false",
}, slices.Concat(readLogs, confighook.Off)...)

// version is that of the git on PATH, or empty if it cannot be run.
var version = sync.OnceValue(func() string {
	text, _ := Version(context.Background())
	return text
})

// FixedEnv applies to every command. Replacement refs and lazy fetches could make an object appear with other content, and optional locks would
// race with the user's own commands. By default glibc returns the memory of each object to the kernel before git allocates memory for the next one
// (mallopt(3)), which causes nine of ten page faults of pack-objects.
var FixedEnv = []string{
	"MALLOC_TRIM_THRESHOLD_=16777216",
	"MALLOC_MMAP_THRESHOLD_=4194304",
	"LC_ALL=C",
	"GIT_NO_REPLACE_OBJECTS=1",
	"GIT_NO_LAZY_FETCH=1",
	"GIT_OPTIONAL_LOCKS=0",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_LITERAL_PATHSPECS=1",
}

// configParameters is the variable that contains the configuration of "git -c".
const configParameters = "GIT_CONFIG_PARAMETERS"

// NoHooks is a variable that keeps git in a workspace from running hooks that the agent has configured, since git 2.55.
var NoHooks = configParameters + "=" + confighook.OffParameters()

// isConfigVariable reports whether a GIT_ variable contains or names the user's configuration. All other GIT_ variables
// are removed, since hooks and aliases run us with theirs set.
func isConfigVariable(name string) bool {
	switch name {
	case "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", configParameters,
		"GIT_CONFIG_COUNT", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH":
		return true
	}
	return strings.HasPrefix(name, "GIT_CONFIG_KEY_") || strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
}

// callerEnvironment returns the caller's environment without git's variables, except those for configuration.
func callerEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "GIT_") && !isConfigVariable(name)
	})
}

// userEnvironment returns callerEnvironment with FixedEnv.
func userEnvironment() []string {
	withLocale := func(v string) bool { return strings.HasPrefix(v, "LC_ALL=") }
	return append(slices.DeleteFunc(callerEnvironment(), withLocale), FixedEnv...)
}

// newUserGit returns a Git for dir with the user's own configuration.
func newUserGit(dir string) *Git {
	return &Git{Dir: dir, base: userEnvironment, config: alwaysConfig, hooks: new(confighook.Hooks)}
}

// NewClosed returns a Git for dir that reads only the repository's own configuration, which the host wrote. The
// argument empty is an empty file that replaces the global configuration.
func NewClosed(dir, empty string) *Git {
	base := func() []string {
		return append([]string{
			"PATH=" + os.Getenv("PATH"),
			"HOME=" + dir,
			"GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_GLOBAL=" + empty,
			"GIT_DIR=" + dir,
			"GIT_ALLOW_PROTOCOL=none",
		}, FixedEnv...)
	}
	return &Git{Dir: dir, base: base, config: slices.Concat(durableConfig, alwaysConfig)}
}

// With returns a Git that also has the given variables.
func (g *Git) With(env ...string) *Git {
	c := *g
	c.env = slices.Concat(g.env, env)
	return &c
}

// WithMemory returns a Git whose commands may allocate at most this many bytes.
func (g *Git) WithMemory(memory int64) *Git {
	c := *g
	c.memory = memory
	return &c
}

// WithProcessor returns a Git whose commands may use at most this much processor time, on Linux. Programs that git starts, such as
// filters, do not count, since they are the user's.
func (g *Git) WithProcessor(most time.Duration) *Git { return g.Metered(&busy.Meter{Most: most}) }

// Metered returns a Git whose commands use a meter.
func (g *Git) Metered(t *busy.Meter) *Git {
	c := *g
	c.meter = t
	return &c
}

// Configured returns a Git that also has the given configuration ("key=value").
func (g *Git) Configured(pairs ...string) *Git {
	c := *g
	c.config = slices.Concat(g.config, pairs)
	return &c
}

// durableConfig makes git sync everything that it writes. By default git does not sync the index, refs and loose
// objects (core.fsync in git-config(1)). core.fsyncMethod=batch is not used: with it, git exits with status 0 even
// if it could not move loose objects to their place because a git gc removed the folder.
var durableConfig = []string{"core.fsync=all", "core.fsyncMethod=fsync"}

// StreamLarge makes git stream large files instead of reading them into memory.
const StreamLarge = "core.bigFileThreshold=8m"

// Durable returns a Git whose writes survive a power loss.
func (g *Git) Durable() *Git { return g.Configured(durableConfig...) }

// gitProgram is the git program, which is looked up once: the first on the user's PATH outside of the work tree. If
// there is none, it is a bare name, which cannot be started.
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
	cmd.Cancel = func() error {
		cmd.WaitDelay = endPatience // read after this function
		// git removes its lock files on SIGTERM, but leaves them behind when it is killed.
		return cmd.Process.Signal(syscall.SIGTERM)
	}
	cmd.WaitDelay = pipePatience
	return cmd
}

const (
	// endPatience is the time that git has to end after SIGTERM, with a helper that keeps a pipe open.
	endPatience = 2 * time.Second
	// pipePatience bounds the reading of what git has written, since a helper of git may keep a pipe open. On a busy machine
	// the reader itself may not run for seconds.
	pipePatience = 20 * time.Second
	// interruptPatience bounds the wait for this process's own ^C after that of git.
	interruptPatience = 2 * time.Second
)

// Look runs a command that only reads.
func (g *Git) Look(ctx context.Context, c Call) error { return g.run(ctx, c) }

// Change runs a command that changes something.
func (g *Git) Change(ctx context.Context, c Call) error {
	if g.Dry {
		return ErrDryRun
	}
	c.Env = slices.Concat(c.Env, g.withoutHooks(ctx))
	return g.run(ctx, c)
}

// withoutHooks returns a variable that switches off the hooks of the user's configuration if alwaysConfig does not.
func (g *Git) withoutHooks(ctx context.Context) []string {
	if g.hooks == nil {
		return nil
	}
	list := func() []string {
		records, _ := g.listConfig(ctx) // if it cannot be read, the command ends, too
		return records
	}
	if !g.hooks.ByName(version, list) {
		return nil
	}
	return []string{configParameters + "=" + confighook.Parameters(os.Getenv(configParameters), list())}
}

func (g *Git) run(ctx context.Context, c Call) (err error) {
	if c.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.For)
		defer cancel()
	}
	cmd := g.command(ctx, c)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: c.Apart}
	var stderr Stderr
	cmd.Stderr = &stderr
	if c.Stdout != nil {
		capped := &cappedWriter{c.Stdout, cmp.Or(c.Limit, outputLimit)}
		cmd.Stdout = capped
		defer func() {
			if err != nil && capped.left < 0 { // git may have died of the closed pipe
				err = fmt.Errorf("git %s: %w", c.Args[0], ErrOutput)
			}
		}()
	}
	err = g.feed(cmd, c.Stdin)
	g.meter.Ended(cmd.ProcessState)
	return callError(ctx, c, err, &stderr)
}

// start starts a command, limits its memory before the command gets any input, and watches its processor time.
func (g *Git) start(cmd *exec.Cmd) error {
	err := cmd.Start()
	if err == nil && g.memory > 0 {
		limitMemory(cmd.Process.Pid, g.memory)
	}
	if err == nil {
		g.meter.Start(cmd.Process)
	}
	return err
}

// feed runs a command with a reader as its standard input. Unlike [exec.Cmd.Run] it does not wait for a silent
// reader after the command has ended, since the reader may be a stream from a workspace.
func (g *Git) feed(cmd *exec.Cmd, stdin io.Reader) error {
	if file, whole := stdin.(*os.File); whole || stdin == nil {
		if whole {
			cmd.Stdin = file // git reads all of it even if this process ends
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
		// after failed, so that a command that succeeds with a truncated input is still reported as cut short
		in.Close()
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

func callError(ctx context.Context, c Call, err error, stderr *Stderr) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && signalOf(exit) == syscall.SIGINT {
		// All processes of the terminal receive ^C. Callers ask ctx whether the user interrupted the work, so it must know.
		select {
		case <-ctx.Done():
		case <-time.After(interruptPatience):
		}
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("git %s: %w", c.Args[0], ctx.Err())
	case exit != nil:
		return &Error{c.Args, exit.ExitCode(), stderr.Lines(), signalOf(exit)}
	}
	return fmt.Errorf("git %s: %w", c.Args[0], err)
}

// signalOf returns the signal that ended a process, or -1.
func signalOf(exit *exec.ExitError) syscall.Signal {
	state, _ := exit.Sys().(syscall.WaitStatus)
	return state.Signal()
}

// Output is Look with the standard output as a string, without a final newline.
func (g *Git) Output(ctx context.Context, args ...string) (string, error) {
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

// Together runs functions concurrently and returns their errors. Git spends most of a short command on starting and
// on reading the index, which several commands can do at the same time.
func Together(functions ...func() error) error {
	errs := make([]error, len(functions))
	var wg sync.WaitGroup
	for i, f := range functions {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// CapOutput returns a writer to w that fails with [ErrOutput] once more than limit bytes were written.
func CapOutput(w io.Writer, limit int64) io.Writer { return &cappedWriter{w, limit} }

type cappedWriter struct {
	w    io.Writer
	left int64
}

// ErrOutput means that a command printed more than its limit.
var ErrOutput = errors.New("more output than allowed")

func (c *cappedWriter) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		return 0, ErrOutput
	}
	return c.w.Write(p)
}

// ReadFrom implements [io.ReaderFrom].
func (c *cappedWriter) ReadFrom(r io.Reader) (int64, error) { return copyAll(c, r) }

// copyBuffers are the buffers in which the output of git processes is read. A landing starts a dozen of these processes.
var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// copyAll is [io.Copy] with one of the copyBuffers.
func copyAll(w io.Writer, r io.Reader) (int64, error) {
	buffer := copyBuffers.Get().(*[32 << 10]byte)
	defer copyBuffers.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buffer[:])
}

// Stderr keeps the beginning and the end of a command's standard error. The zero Stderr is ready to use.
type Stderr struct{ head, tail []byte }

// ReadFrom implements [io.ReaderFrom].
func (h *Stderr) ReadFrom(r io.Reader) (int64, error) { return copyAll(h, r) }

// Write implements io.Writer.
func (h *Stderr) Write(p []byte) (int, error) {
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
func (h *Stderr) Lines() []string {
	return Escaped(strings.Split(strings.TrimSpace(string(h.head)+string(h.tail)), "\n"))
}

// String returns the lines that are not empty, joined into one.
func (h *Stderr) String() string { return (&Error{Lines: h.Lines()}).Said() }
