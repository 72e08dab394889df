// Package prison describes prisons: isolated environments in which an agent works on one workspace.
//
// A [Spec] describes a prison. The zero value of every optional field is the strictest choice. A [Backend] makes
// prisons: package native from Linux namespaces, package docker from containers. A [Prison] is a running prison. The
// package deals with directories and processes, and does not know git.
package prison

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
)

// Tools is the path below which [Spec.Tools] appear inside.
const Tools = "/tools"

// ImpatientResolver returns the options of resolv.conf(5) for a prison without a network. With them musl gives up at once instead
// of after five seconds for each name, and glibc, which does not wait for a closed port, behaves as before.
func ImpatientResolver() []string { return []string{"timeout:0", "attempts:1"} }

// Workspace is the path under which the shared directory appears inside every prison.
const Workspace = "/workspace"

var (
	// ErrNotRunning reports that the prison does not run: it was never started, or was stopped or killed.
	ErrNotRunning = errors.New("the prison is not running")
	// ErrElsewhere reports that the prison runs where this process cannot see it, or belongs to the folder of which
	// this one is a copy.
	ErrElsewhere = errors.New("the prison runs in another container, on another host or for another copy of the repository")
	// ErrFrozen reports that the prison runs but does not answer in a reasonable time.
	ErrFrozen = errors.New("the prison does not answer: it is frozen, or leaves its first process no processor")
	// ErrFlooded reports that the agent has so many descriptors in flight that the prison cannot pass any to its
	// caller.
	ErrFlooded = errors.New("the agent keeps the prison from passing descriptors (it has too many in flight)")
	// ErrNotLaunched reports that no launched command runs, or that none was ever launched.
	ErrNotLaunched = errors.New("no launched command")
	// ErrNoHome reports that the backend keeps no home after a prison has ended, or that there is none yet.
	ErrNoHome = errors.New("the prison has no home")
	// ErrNotFound reports that a command does not exist inside (exit status 127 of a shell).
	ErrNotFound = errors.New("command not found")
	// ErrNotExecutable reports that a command exists inside and cannot be executed (126).
	ErrNotExecutable = errors.New("command not executable")
)

// Unavailable reports that a backend cannot provide the requested isolation on this machine.
type Unavailable struct {
	Backend string
	Reason  string   // what is missing, in words
	Mend    []string // commands that solve the problem, ready to paste
	Frozen  bool     // the prison runs and could continue, so that the error also is an [ErrFrozen]
}

func (u *Unavailable) Error() string {
	return fmt.Sprintf("%s prison is not available here: %s", u.Backend, u.Reason)
}

// Is reports whether target is [ErrFrozen] and the prison is frozen. [errors.Is] calls it.
func (u *Unavailable) Is(target error) bool { return u.Frozen && target == ErrFrozen }

// Network selects the network that a prison can reach.
type Network int

const (
	// NetworkNone is a separate loopback interface and nothing else.
	NetworkNone Network = iota
	// NetworkAllowlist reaches the names and addresses that rules allow, see package egress/control.
	NetworkAllowlist
	// NetworkOpen reaches public addresses, and never the host's own.
	NetworkOpen
)

var networks = [...]string{NetworkNone: "none", NetworkAllowlist: "allowlist", NetworkOpen: "open"}

func (n Network) String() string { return networks[n] }

// ParseNetwork reads the name of a network setting.
func ParseNetwork(name string) (Network, error) {
	for n, known := range networks {
		if name == known {
			return Network(n), nil
		}
	}
	return NetworkNone, fmt.Errorf("network %q: want one of %s", name, strings.Join(networks[:], ", "))
}

// MostFiles is the maximum number of files that a process in a prison may have open. It is also about the number of
// descriptors that all these processes together may have in flight over sockets (unix(7)). A process outside the
// agent's reach that passes descriptors as the same uid must have a higher limit.
const MostFiles = 1 << 16

// Limits bound the resources of a prison. A zero field means the backend's default, never "no limit".
type Limits struct {
	Memory int64   // bytes
	CPUs   float64 // cores
	PIDs   int     // processes and threads
}

// DefaultLimits are the values for zero fields of [Limits].
var DefaultLimits = Limits{Memory: 4 << 30, CPUs: 2, PIDs: 512}

// OrDefault returns l with the zero fields filled from [DefaultLimits].
func (l Limits) OrDefault() Limits {
	if l.Memory == 0 {
		l.Memory = DefaultLimits.Memory
	}
	if l.CPUs == 0 {
		l.CPUs = DefaultLimits.CPUs
	}
	if l.PIDs == 0 {
		l.PIDs = DefaultLimits.PIDs
	}
	return l
}

// Sockets returns the bytes that all sockets together may hold, for systems that count them separately from other
// memory.
func (l Limits) Sockets() int64 {
	const part, least = 16, 4 << 20
	return max(l.OrDefault().Memory/part, least)
}

// Spec describes a prison.
type Spec struct {
	// ID names the prison's control group and runtime files on the host. It is not visible inside. Required.
	ID string
	// Name is the prison's name in the lists of other tools on the host, such as those of containers. If it is empty,
	// the backend derives a name from ID. Backends without such lists ignore it.
	Name string
	// Root is the absolute host path of a folder with the prison's system. If it is empty, the prison uses the host's
	// own system. The folder is shared read-only and must contain sh and git. Backends with images refuse it.
	Root string
	// Tools are shared read-only in addition to the system. They come first in the prison's PATH.
	Tools []Tool
	// Image is the container image with the prison's system. Runtime is the container runtime. If Runtime is empty,
	// the engine chooses it. A backend without images refuses both.
	Image, Runtime string
	// Dir is an existing host-owned directory (mode 0700). The backend stores its own files in it: sockets, locks,
	// the prison's writable home. Required.
	Dir string
	// Workspace is the absolute host path of the only directory shared with the host. UID and GID own it on disk,
	// with mode 0700 (see [Backend.Prepare]). Required.
	Workspace string
	// UID and GID are the phantom's. They are the same inside and on the host. Required.
	UID, GID int
	// User and Hostname are the login name and the host name inside. Required.
	User, Hostname string
	// Env is added to the fixed environment (PATH, HOME, USER, LOGNAME, SHELL, LANG), as NAME=VALUE. Values can be
	// secrets. A backend keeps them only in memory, and only while the prison runs. Only [Backend.Start] needs them.
	Env []string
	// ReadOnly shares the workspace read-only and keeps no home. Such a prison only reads the workspace.
	ReadOnly bool
	// Alone states that no other prison uses the workspace of a prison made by Open, in which other programs run than git of this
	// host. A backend can then hide the workspace's path on the host, as in a prison made by Start. The home is fresh.
	Alone   bool
	Network Network
	// Secrets are the values of the credentials in the network's rules. They reach the process that holds the network and the one
	// with the packets, and never the prison: no message to its processes has them. Only [Backend.Start] needs them.
	Secrets []secret.Secret `json:"-"`
	// Sources returns Secrets without their values, for a network that [Backend.Attach] finds lost and connects again. The process
	// that holds the network reads the values. Sources may be nil.
	Sources func(context.Context) []secret.Secret `json:"-"`
	Limits  Limits
	// Record requests a record of all programs that run inside, see package execs. Without it, nothing watches them. Prisons made
	// by Open have no record.
	Record bool
	// Deny are rules for programs that must not start, see package execs. They need Record. A prison that cannot enforce
	// them does not start.
	Deny []string
	// Running is called with what Start will return, as soon as the prison made by [Backend.Start] can be attached to. That may be
	// before its network is ready, without which Start fails. A backend may not call it. It may be nil.
	Running func(Isolation) `json:"-"`
}

// Tool is a program, or a folder of programs, of the host that a prison may use. It must be readable by all users.
type Tool struct {
	Name string // path below [Tools] inside
	Path string // on the host, absolute, without symbolic links
	// Optional means that the programs inside work without it, so that it is left out once the host does not have it any more.
	Optional bool
}

// Isolation describes the isolation of a started prison.
type Isolation struct {
	Runtime string     // the container runtime, empty for the native backend
	Weaker  []Weakness // the measures that this machine could not provide
}

// Finding is a property of this machine on which a backend's prisons depend.
type Finding struct {
	Name  string // such as "user namespaces"
	Value string // such as "yes", or a version
	// Lack describes the measure that is missing on this machine because of it, as [Isolation.Weaker] would. Empty if
	// none is.
	Lack string
	// Mend are commands, ready to paste, that would provide the missing measure.
	Mend []string
}

// Traits are properties of a backend's prisons that callers depend on.
type Traits struct {
	// Images reports that prisons are made from container images: [Spec.Image] and [Spec.Runtime] are used,
	// [Spec.Root] is refused.
	Images bool
	// Overlay reports that a running prison sees its workspace through an overlay. No process outside may change the
	// workspace meanwhile.
	Overlay bool
	// HostKernel reports that the agent's system calls reach this machine's kernel.
	HostKernel bool
}

// Sweeper is a backend whose prisons survive the removal of their folders on the host.
type Sweeper interface {
	// SweepOrphaned ends the prisons whose folders no longer exist.
	SweepOrphaned(ctx context.Context) error
}

// Measurer is a backend that can measure what a running prison uses.
type Measurer interface {
	// Usage measures the prison made by Start. The error is [ErrNotRunning] if it does not run.
	Usage(ctx context.Context, spec Spec) (Usage, error)
}

// Usage sums up the resources that all processes of a prison use. -1 stands for a value that is not available.
type Usage struct {
	CPU       time.Duration // processor time since the start of the prison
	Memory    int64         // bytes; without [Traits.Images], memory that processes share counts several times
	Read      int64         // bytes from disks since the start of the prison
	Written   int64         // bytes to disks
	Processes int64         // with threads
	Killed    int64         // processes that were killed for lack of memory
}

// Timer is a backend that knows when the output of the launched command came.
type Timer interface {
	// Times returns when the output came that [Backend.Shown] returns. The error is [ErrNotLaunched] if that is not known.
	Times(ctx context.Context, spec Spec) ([]Moment, error)
}

// Moment is when a part of an output came: the part from Offset up to the next moment's. Several can have the offset 0: the last
// of them counts.
type Moment struct {
	Offset int64
	At     time.Time
}

// Mender is a backend whose running prisons can lose a process on the host without ending.
type Mender interface {
	// Mend replaces such a process of the prison made by Start as soon as it has ended, until ctx ends, and calls mended each
	// time. It does nothing for a prison that does not run.
	Mend(ctx context.Context, spec Spec, mended func())
	// Supply hands Secrets to the network of the running prison made by Start, in addition to those that it has.
	Supply(ctx context.Context, spec Spec) error
}

// Backend makes prisons of one kind.
//
// A backend may also be a [Granted].
type Backend interface {
	// Name returns the backend's name in flags, notes and status.
	Name() string
	// Traits describes the prisons of a runtime, which is empty for a backend without runtimes.
	Traits(runtime string) Traits
	// Probe returns an [*Unavailable] if this machine cannot provide the backend's prisons to the calling user. It
	// changes nothing.
	Probe(ctx context.Context) error
	// ProbeOf is Probe for a prison that was made before, which needs the ids and the engine that it had then.
	ProbeOf(ctx context.Context, spec Spec) error
	// Examine is a slower Probe that returns all its findings, also when it fails. It changes nothing.
	Examine(ctx context.Context) ([]Finding, error)
	// Prepare creates the workspace directory: empty, mode 0700, owned by the phantom. It fails if something exists
	// at that path.
	Prepare(ctx context.Context, spec Spec) error
	// Start starts a prison that survives the calling process. It returns once Exec works.
	Start(ctx context.Context, spec Spec) (Isolation, error)
	// Open starts a prison that ends with Close or with the calling process, however that process ends. It can run
	// beside a started prison on the same workspace. It is used with Spec.ReadOnly.
	Open(ctx context.Context, spec Spec) (Prison, error)
	// OpenHome is like Open, but shares the home of the prison made by Start in the place of the workspace. The home
	// contains the agent's files that outlive a prison, wherever the backend keeps them. Without a home, the error is
	// [ErrNoHome].
	OpenHome(ctx context.Context, spec Spec) (Prison, error)
	// HomeDisk returns a folder of this machine on the disk of the home, or empty if none is known.
	HomeDisk(spec Spec) string
	// Attach connects to the prison made by Start. It returns [ErrNotRunning] if there is none, and [ErrFrozen] if it
	// does not answer.
	Attach(ctx context.Context, spec Spec) (Prison, error)
	// Stop ends the prison made by Start, if there is one, with every process in it. It removes the prison's other
	// files on the host (sockets, control groups), also after a crash. The workspace and the prison's writable files
	// stay. When it returns, nothing of the prison runs.
	Stop(ctx context.Context, spec Spec) error
	// Wipe removes the workspace directory and the prison's writable files, and never follows a symbolic link. The
	// prison must be stopped. Missing files are not an error.
	Wipe(ctx context.Context, spec Spec) error
	// Launched describes the command given to [Prison.Launch], and returns nil if there was none. It also works after
	// the prison has ended.
	Launched(ctx context.Context, spec Spec) (*Launched, error)
	// Shown returns the last output of the launched command on its terminal, up to a limit. The agent wrote these
	// bytes. It also works after the prison has ended. Without a launched command, the error is [ErrNotLaunched].
	Shown(ctx context.Context, spec Spec) (io.ReadCloser, error)
}

// Granted is a backend that can name what confines its prisons on this machine.
type Granted interface {
	// Granted returns it by name, for example the version of Landlock. It starts no process.
	Granted() map[string]string
}

// Freezer is a running prison whose processes can be frozen.
type Freezer interface {
	// Freeze stops all processes until they are thawed, or until the calling process ends. No process starts meanwhile, except with
	// [Process.Frozen] where [Traits.Overlay] is set. If a process that called Hold has ended, Freeze takes its place. An error means
	// that this call has frozen nothing.
	Freeze(ctx context.Context) (Frozen, error)
}

// Frozen is a prison whose processes are frozen.
type Frozen interface {
	// Hold keeps the processes frozen also after the end of the calling process.
	Hold() error
	// Thaw returns when the processes go on.
	Thaw() error
	// Leave ends what Freeze began. Held processes stay frozen for the next one, and others go on.
	Leave() error
}

// Prison is a running prison.
type Prison interface {
	// Exec runs a process to its end and returns its exit status, or 128+n if signal n ended it. An error means that
	// the process could not be run ([ErrNotFound], [ErrNotExecutable], [ErrNotRunning], ...). When ctx ends, the
	// process is killed, and Exec returns the context's error. The process gets neither the caller's terminal nor the
	// caller's files: everything is copied through pipes.
	Exec(ctx context.Context, p Process) (status int, err error)
	// Launch runs a process in the background, with its own terminal.
	Launch(ctx context.Context, p Process) error
	// Join copies the terminal output of the launched command to p.Stdout from now on, and p.Stdin to the terminal's
	// input. The terminal takes the size of p.Terminal. The rest of p is unused. Join returns when the command or ctx
	// has ended, or when p.Stdout could not keep up. If no launched command runs, it returns [ErrNotLaunched].
	Join(ctx context.Context, p Process) error
	// Watch sends on the channel whenever one of the paths inside may have changed. The paths are files or
	// directories, which are not watched recursively. Several changes can cause one send. Watch uses inotify where
	// possible and always a poll once a second. It needs no process in the prison, and paths may be missing or
	// vanish. The channel is closed when ctx or the prison ends.
	Watch(ctx context.Context, paths []string) (<-chan struct{}, error)
	// Close releases the connection. A prison made by Open ends with it completely.
	Close() error
}

// Own is a prison whose first process is this program.
type Own interface {
	// Own returns the path inside with which [Prison.Exec] runs this program. It is no path for the agent's processes.
	Own() string
}

// TreeWatcher is a prison that can watch all folders of its workspace.
type TreeWatcher interface {
	// WatchTree begins to watch all folders of the workspace, and fails if there are too many.
	WatchTree(ctx context.Context) (Tree, error)
}

// Tree reports in which folders of a workspace something may have changed. The reports are hints: some changes, such as those
// through a mapping of a file, are not reported, and an agent can make the reports wrong.
type Tree interface {
	// Touched returns the folders whose modes, times or entries may have changed since the last call, as paths from the workspace,
	// which is the empty path. After an error the tree is of no use any more: changes may have been missed.
	Touched() ([]string, error)
	// Close ends the watching.
	Close() error
}

// IsVariableName reports whether a shell accepts a name as the name of a variable.
func IsVariableName(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	return strings.Trim(name, letters+"0123456789") == "" && name != "" && strings.Contains(letters, name[:1])
}

// Process is one command inside a prison.
type Process struct {
	Argv []string // looked up in the prison's PATH unless Argv[0] contains a slash; required
	Env  []string // added to the prison's environment, NAME=VALUE
	Dir  string   // working directory inside; empty means [Workspace]

	Stdin          io.Reader // nil means empty
	Stdout, Stderr io.Writer // nil means discarded

	// Terminal, if not nil, gives the process a pseudo terminal in the prison. Stdin is the terminal's input and
	// Stdout its output. Stderr is not used.
	Terminal *Terminal

	// Frozen lets the process run while the others are frozen, see [Freezer].
	Frozen bool

	// Bare leaves out the variables of [Spec.Env], which could mislead the process: PATH, or GIT_DIR.
	Bare bool
}

// Merged reports whether both outputs are the same writer, which two copies must not write to at the same time.
func (p Process) Merged() bool {
	defer func() { _ = recover() }() // values that cannot be compared count as different, as in os/exec
	return p.Stdout != nil && p.Stdout == p.Stderr
}

// Size is a terminal's size in characters.
type Size struct{ Rows, Cols uint16 }

// Terminal describes the pseudo terminal of a process.
type Terminal struct {
	Size   Size
	Resize <-chan Size // later sizes; may be nil
	Term   string      // value of TERM inside; empty means xterm-256color
}

// Launched is the state of a detached command.
type Launched struct {
	Argv   []string
	Exited bool
	Status int // exit status once Exited; 128+n for signal n, also if the end of the prison killed it (137)
}

// Capped keeps the first Max bytes written to it and discards the rest, because a process in the prison can write
// without end.
type Capped struct {
	Max  int
	kept bytes.Buffer // not embedded, because io.Copy would use its ReadFrom, which has no limit
}

// Write implements [io.Writer].
func (c *Capped) Write(p []byte) (int, error) {
	c.kept.Write(p[:min(len(p), max(0, c.Max-c.kept.Len()))])
	return len(p), nil
}

// Bytes returns the kept bytes.
func (c *Capped) Bytes() []byte { return c.kept.Bytes() }

// String returns the kept bytes as a string.
func (c *Capped) String() string { return c.kept.String() }
