// Package prison describes prisons: isolated environments in which an agent works on one workspace.
//
// A [Spec] describes a prison. The zero value of every optional field is the strictest choice. A [Backend] makes prisons: package native
// from Linux namespaces, package docker from containers. A [Prison] is a running prison. The package knows directories and processes, and
// does not know git. Begin reading at Backend.
package prison

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
)

// Tools is the folder inside in which [Spec.Tools] appear.
const Tools = "/tools"

// SearchPath is PATH inside, unless an image has another one.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// ImpatientResolver returns the options of resolv.conf(5) for a prison without a network. With them, musl gives up a name at once instead
// of after five seconds. For glibc, which never waits for a closed port, they change nothing.
func ImpatientResolver() []string { return []string{"timeout:0", "attempts:1"} }

// Workspace is the path under which the shared directory appears inside every prison.
const Workspace = "/workspace"

var (
	// ErrNotRunning reports that the prison does not run: it was never started, or was stopped or killed.
	ErrNotRunning = errors.New("the prison is not running")
	// ErrElsewhere reports that the prison runs where this process cannot see it, or that this folder is a copy of the prison's folder.
	ErrElsewhere = errors.New("the prison runs in another container, on another host or for another copy of the repository")
	// ErrFrozen reports that the prison runs, but does not answer in time.
	ErrFrozen = errors.New("the prison does not answer: it is frozen, or leaves its first process no processor")
	// ErrMoved reports that a process went on while the prison was frozen.
	ErrMoved = errors.New("a process inside went on although it was stopped")
	// ErrFlooded reports that the agent has so many descriptors in flight that the prison cannot pass any to its
	// caller.
	ErrFlooded = errors.New("the agent keeps the prison from passing descriptors (it has too many in flight)")
	// ErrNotLaunched reports that no launched command runs, or that there has never been one.
	ErrNotLaunched = errors.New("no launched command")
	// ErrNoHome reports that the prison has no home yet, or that the backend keeps no home after a prison has ended.
	ErrNoHome = errors.New("the prison has no home")
	// ErrHungUp is the cause of a context that a signal to this program ended, such as the one of a terminal that was closed.
	ErrHungUp = errors.New("hung up")
	// ErrNotFound reports that a command does not exist inside (exit status 127 of a shell).
	ErrNotFound = errors.New("command not found")
	// ErrNotExecutable reports that a command exists inside and cannot be executed (126).
	ErrNotExecutable = errors.New("command not executable")
)

// HangupGrace is how long processes may go on after SIGHUP, before they are killed.
const HangupGrace = 2 * time.Second

// Unavailable reports that a backend cannot provide the requested isolation on this machine.
type Unavailable struct {
	Backend string   // name of the backend
	Reason  string   // what is missing, in words
	Mend    []string // commands that solve the problem, ready to paste
	Frozen  bool     // the prison runs and could continue; the error then is also an [ErrFrozen]
	Silent  bool     // what makes the prisons is there, but does not answer in time
}

func (u *Unavailable) Error() string {
	return fmt.Sprintf("%s prison is not available here: %s", u.Backend, u.Reason)
}

// Is makes [errors.Is] find [ErrFrozen] in an error with Frozen.
func (u *Unavailable) Is(target error) bool { return u.Frozen && target == ErrFrozen }

// OutputLost reports that a process ran, and that its output could not be written to Stdout or Stderr of its [Process].
type OutputLost struct {
	Err    error // of the writer
	Status int   // the exit status of the process, if Ended
	Ended  bool  // the process ended by itself
}

func (o *OutputLost) Error() string { return "copy output: " + o.Err.Error() }

// Unwrap returns the error of the writer.
func (o *OutputLost) Unwrap() error { return o.Err }

// Network selects the network that a prison can reach.
type Network int

const (
	// NetworkNone is the prison's own loopback interface and no other.
	NetworkNone Network = iota
	// NetworkAllowlist reaches only the names and addresses that rules allow, see package egress/control.
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

// MostFiles is how many files a process in a prison may have open at most. It is also about how many descriptors all these processes
// together may have in flight over sockets (unix(7)). A process outside that passes descriptors with the same uid must have a higher
// limit.
const MostFiles = 1 << 16

// Limits bound the resources of a prison. A zero field means the backend's default, never "no limit".
type Limits struct {
	Memory int64   // bytes of memory of all processes
	CPUs   float64 // processor cores
	PIDs   int     // number of processes and threads
}

// DefaultLimits are the values for zero fields of [Limits].
var DefaultLimits = Limits{Memory: 4 << 30, CPUs: 2, PIDs: 512}

// OrDefault returns l with the zero fields filled from [DefaultLimits].
func (l Limits) OrDefault() Limits {
	return Limits{cmp.Or(l.Memory, DefaultLimits.Memory), cmp.Or(l.CPUs, DefaultLimits.CPUs), cmp.Or(l.PIDs, DefaultLimits.PIDs)}
}

// Sockets returns how many bytes all sockets together may hold. It is for systems that count them separately from other memory.
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
	// UID and GID are the ids of the phantom, the agent's user. They are the same inside and on the host. Required.
	UID, GID int
	// User and Hostname are the login name and the host name inside. Required.
	User, Hostname string
	// Env are variables (NAME=VALUE) in addition to the fixed ones (PATH, HOME, USER, LOGNAME, SHELL, LANG). Values can be secrets. A
	// backend keeps them only in memory, and only while the prison runs. Only [Backend.Start] needs them.
	Env []string
	// ReadOnly shares the workspace read-only and keeps no home. Such a prison only reads the workspace.
	ReadOnly bool
	// Alone states that a prison made by Open, in which other programs than this host's git run, is the only prison that uses the
	// workspace. A backend can then hide the workspace's path on the host, as in a prison made by Start. The home is empty.
	Alone   bool
	Network Network
	// Secrets are the values of the credentials in the network's rules. Two processes get them: the one that holds the network and the
	// one with the packets. No process in the prison gets them in any message. Only [Backend.Start] needs them.
	Secrets []secret.Secret `json:"-"`
	// Sources returns Secrets without their values. [Backend.Attach] calls it when the process that holds the network has ended and a new
	// one is started, which then reads the values. Sources may be nil.
	Sources func(context.Context) []secret.Secret `json:"-"`
	Limits  Limits
	// Record requests a record of all programs that run inside, see package execs. Prisons made by Open have no record.
	Record bool
	// Deny are rules for programs that must not start, see package execs. They need Record. Start fails if the backend cannot enforce
	// them.
	Deny []string
	// Running is called with the result of Start as soon as the prison can be attached to. Its network may not be ready yet, and if that
	// fails, Start fails later. A backend may not call it. It may be nil.
	Running func(Isolation) `json:"-"`
}

// Tool is a program, or a folder of programs, of the host that a prison may use. It must be readable by all users.
type Tool struct {
	Name string // path inside, below [Tools]
	Path string // absolute path on the host, without symbolic links
	// Optional means that the tool is left out if the host no longer has it, since the programs inside work without it.
	Optional bool
}

// Isolation describes the isolation of a started prison.
type Isolation struct {
	Runtime string     // the container runtime, empty for the native backend
	Weaker  []Weakness // the measures that this machine could not provide
	// Emptied are the image's variables about proxies. They are empty inside, because the network carries all connections itself.
	Emptied []string
}

// Finding is a property of this machine on which a backend's prisons depend.
type Finding struct {
	Name  string // such as "user namespaces"
	Value string // such as "yes", or a version
	// Lack describes the measure that is missing on this machine because of this property, as in [Isolation.Weaker]. It is empty if no
	// measure is missing.
	Lack string
	// Mend are commands, ready to paste, that provide the missing measure.
	Mend []string
}

// Traits are properties of a backend's prisons that callers depend on.
type Traits struct {
	// Images reports that prisons are made from container images: the backend uses [Spec.Image] and [Spec.Runtime], and refuses
	// [Spec.Root].
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
	// Usage measures the prison made by Start. It returns [ErrNotRunning] if that prison does not run, unless the limit of memory has ended
	// it: then Killed is known, and nothing else.
	Usage(ctx context.Context, spec Spec) (Usage, error)
}

// Usage is the use of resources by all processes of a prison together. -1 means that a value is not available.
type Usage struct {
	CPU       time.Duration // processor time since the start of the prison
	Memory    int64         // bytes; without [Traits.Images], memory that several processes share counts several times
	Read      int64         // bytes that were read from disks since the start of the prison
	Written   int64         // bytes that were written to disks since the start of the prison
	Processes int64         // processes and threads
	Killed    int64         // processes that the kernel killed because memory ran out
}

// Timer is a backend that knows when the output of the launched command came.
type Timer interface {
	// Times returns when the output came that [Backend.Shown] returns. It returns [ErrNotLaunched] if that is not known.
	Times(ctx context.Context, spec Spec) ([]Moment, error)
}

// Moment is the time at which a part of an output came: the part from Offset up to the next moment's Offset. If several moments have the
// offset 0, the last of them is right.
type Moment struct {
	Offset int64 // bytes from the beginning of Shown's output
	At     time.Time
}

// Mender is a backend whose prisons need a process on the host that can end before them.
type Mender interface {
	// Mend replaces that process of the prison made by Start whenever the process has ended, and then calls mended. It returns when ctx
	// ends. It does nothing while the prison does not run.
	Mend(ctx context.Context, spec Spec, mended func())
	// Supply passes Secrets to the network of the running prison made by Start. The network keeps those that it has.
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
	// Probe returns an [*Unavailable] if the calling user cannot have this backend's prisons on this machine. It changes nothing.
	Probe(ctx context.Context) error
	// ProbeOf is Probe for an existing prison, which needs the ids and the engine with which it was made.
	ProbeOf(ctx context.Context, spec Spec) error
	// Examine is a slower Probe that returns all findings, also if it fails. It changes nothing.
	Examine(ctx context.Context) ([]Finding, error)
	// Prepare creates the workspace folder: empty, with mode 0700, owned by the phantom. It fails if the path exists.
	Prepare(ctx context.Context, spec Spec) error
	// Start starts a prison that survives the calling process. It returns when Exec works.
	Start(ctx context.Context, spec Spec) (Isolation, error)
	// Open starts a prison that ends with Close or with the calling process, however that process ends. It can run
	// beside a started prison on the same workspace. It is used with Spec.ReadOnly.
	Open(ctx context.Context, spec Spec) (Prison, error)
	// OpenHome is like Open, but shares the home of the prison made by Start instead of the workspace. The home contains the agent's
	// files that outlive a prison. It returns [ErrNoHome] if there is no home.
	OpenHome(ctx context.Context, spec Spec) (Prison, error)
	// HomeDisk returns a folder of this machine on the disk with the home. It is empty if no such folder is known.
	HomeDisk(spec Spec) string
	// Attach connects to the prison made by Start. It returns [ErrNotRunning] if there is none, and [ErrFrozen] if it
	// does not answer.
	Attach(ctx context.Context, spec Spec) (Prison, error)
	// Stop ends the prison made by Start with every process in it, if there is one. When it returns, no process of the prison runs. It
	// removes the prison's files for running on the host (sockets, control groups), also after a crash. The workspace and the prison's
	// writable files stay.
	Stop(ctx context.Context, spec Spec) error
	// Wipe removes the workspace folder and the prison's writable files. It never follows a symbolic link. The prison must be stopped.
	// Missing files are not an error.
	Wipe(ctx context.Context, spec Spec) error
	// Launched describes the command given to [Prison.Launch]. It returns nil if there was none. It also works after the prison has
	// ended.
	Launched(ctx context.Context, spec Spec) (*Launched, error)
	// Shown returns the last output of the launched command's terminal, up to a limit. The agent has chosen these bytes. Shown also works
	// after the prison has ended. It returns [ErrNotLaunched] if there was no launched command.
	Shown(ctx context.Context, spec Spec) (io.ReadCloser, error)
}

// Granted is a backend that can name what confines its prisons on this machine.
type Granted interface {
	// Granted returns the confining measures by name, for example the version of Landlock. It starts no process.
	Granted() map[string]string
}

// Freezer is a running prison whose processes can be frozen.
type Freezer interface {
	// Freeze stops all processes until they are thawed, or until the calling process ends. Meanwhile no process starts, except with
	// [Process.Frozen] if [Traits.Overlay] is set. If the processes are held for a caller that has ended, Freeze takes them over. If it
	// returns an error, it has frozen nothing.
	Freeze(ctx context.Context) (Frozen, error)
}

// Frozen is a prison whose processes are frozen.
type Frozen interface {
	// Hold keeps the processes frozen even if the calling process ends. If a process went on since Freeze, it returns [ErrMoved].
	Hold() error
	// Thaw lets the processes go on. It returns when they run. It returns [ErrMoved] if one went on after Hold.
	Thaw() error
	// Leave ends the freeze of this caller. Held processes stay frozen until another call of Freeze; other processes go on.
	Leave() error
}

// Prison is a running prison.
type Prison interface {
	// Exec runs a process to its end and returns its exit status, or 128+n if signal n ended it. An error means that the process could
	// not be run ([ErrNotFound], [ErrNotExecutable], [ErrNotRunning], ...), or that its output is lost ([OutputLost]). When ctx ends, Exec
	// kills the process and returns the context's error. If the cause of that is [ErrHungUp], the process and its session get SIGHUP
	// before, and at most [HangupGrace] to end. The process gets neither the caller's terminal nor the caller's files: all data is copied
	// through pipes.
	Exec(ctx context.Context, p Process) (status int, err error)
	// Launch runs a process in the background, with its own terminal.
	Launch(ctx context.Context, p Process) error
	// Join copies the launched command's terminal output from now on to p.Stdout, and p.Stdin to the terminal's input. Before the output
	// it writes sequences for the terminal modes that the command has set before. It gives the terminal the size of p.Terminal, and
	// ignores the rest of p. It returns when the command or ctx ends, or when p.Stdout is too slow. It returns [ErrNotLaunched] if no
	// launched command runs.
	Join(ctx context.Context, p Process) error
	// Watch sends on the channel when one of the paths inside may have changed. The paths are files or folders, which are not watched
	// recursively. They may be missing or vanish. Several changes can cause one send. Watch uses inotify where possible, and always
	// checks at least once a second. The caller need not run a process for it. The channel is closed when ctx or the prison ends.
	Watch(ctx context.Context, paths []string) (<-chan struct{}, error)
	// Close releases the connection. A prison made by Open ends completely.
	Close() error
}

// Own is a prison whose first process is this program.
type Own interface {
	// Own returns the path inside with which [Prison.Exec] runs this program. The agent's processes cannot use it.
	Own() string
}

// TreeWatcher is a prison that can watch all folders of its workspace.
type TreeWatcher interface {
	// WatchTree begins to watch all folders of the workspace, and fails if there are too many.
	WatchTree(ctx context.Context) (Tree, error)
}

// Tree reports in which folders of a workspace something may have changed. The reports are hints: some changes, such as those through a
// mapping of a file, are not reported, and an agent can cause wrong reports.
type Tree interface {
	// Touched returns the folders whose modes, times or entries may have changed since the last call, as paths from the workspace. The
	// workspace itself is the empty path. After an error the tree cannot be used any more, since it may have missed changes.
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

	Stdin          io.Reader // nil means no input
	Stdout, Stderr io.Writer // nil means that the output is discarded

	// Terminal, if not nil, gives the process a pseudo terminal in the prison. Stdin is the terminal's input and
	// Stdout its output. Stderr is not used.
	Terminal *Terminal

	// Frozen lets the process run while the others are frozen, see [Freezer].
	Frozen bool

	// Bare leaves out the variables of [Spec.Env], some of which, such as PATH or GIT_DIR, could mislead the process.
	Bare bool
}

// Merged reports whether Stdout and Stderr are the same writer. Two goroutines must not write to it at the same time.
func (p Process) Merged() bool {
	defer func() { _ = recover() }() // writers that cannot be compared count as different, as in os/exec
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

// Launched is the state of a launched command.
type Launched struct {
	Argv   []string
	Exited bool
	Status int // exit status if Exited; 128+n for signal n, and 137 if the command was killed with the prison
}

// Capped keeps the first Max bytes that are written to it and discards the rest. It is needed because a process in the prison can write
// without end.
type Capped struct {
	Max  int          // bytes
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
