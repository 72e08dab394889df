// Package prison describes the closed box in which an agent works on one workspace.
//
// A [Spec] says what a prison is made of; the zero value of every optional field
// is the tightest choice. A [Backend] makes prisons (package native of Linux
// namespaces, package docker of containers); a [Prison] is one that runs. The package knows directories and
// processes and nothing of git.
package prison

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Tools is the path below which [Spec.Tools] appear inside.
const Tools = "/tools"

// Workspace is the path under which the shared directory appears inside every prison.
const Workspace = "/workspace"

var (
	// ErrNotRunning says that the prison does not run (never started, stopped, or killed).
	ErrNotRunning = errors.New("the prison is not running")
	// ErrElsewhere says that it runs where this process cannot see it, or for the folder of which this one is a copy.
	ErrElsewhere = errors.New("the prison runs in another container, on another host or for another copy of the repository")
	// ErrFrozen says that the prison runs and does not answer, in any time that would be worth waiting.
	ErrFrozen = errors.New("the prison does not answer: it is frozen, or leaves its first process no processor")
	// ErrFlooded says that the agent holds so many descriptors in flight that a prison cannot pass any to its caller.
	ErrFlooded = errors.New("the agent keeps the prison from passing descriptors (it has too many in flight)")
	// ErrNotLaunched says that no launched command runs, or that none was ever launched.
	ErrNotLaunched = errors.New("no launched command")
	// ErrNoHome says that there is no home that outlives the prison, or none yet.
	ErrNoHome = errors.New("the prison has no home")
	// ErrNotFound says that a command does not exist inside (exit status 127 of a shell).
	ErrNotFound = errors.New("command not found")
	// ErrNotExecutable says that a command exists inside and cannot be executed (126).
	ErrNotExecutable = errors.New("command not executable")
)

// Unavailable says that a backend cannot give the isolation asked for on this machine.
type Unavailable struct {
	Backend string
	Reason  string   // what is missing, in words
	Mend    []string // commands that would mend it, ready to paste
	Frozen  bool     // the prison runs, and would go on: this is an [ErrFrozen], too
}

func (u *Unavailable) Error() string {
	return fmt.Sprintf("%s prison is not available here: %s", u.Backend, u.Reason)
}

// Is implements what [errors.Is] asks for.
func (u *Unavailable) Is(target error) bool { return u.Frozen && target == ErrFrozen }

// Network is what a prison can reach.
type Network int

const (
	// NetworkNone is an own loopback interface and nothing else.
	NetworkNone Network = iota
	// NetworkOpen reaches the internet and the host's own addresses, but neither its loopback nor link-local ones.
	NetworkOpen
)

var networks = [...]string{NetworkNone: "none", NetworkOpen: "open"}

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

// MostFiles is how many files a process in a prison may have open, and about how many descriptors all of them may have in
// flight over sockets (unix(7)). Who passes descriptors as the same uid outside the agent's reach must have more.
const MostFiles = 1 << 16

// Limits bound what a prison may use. A zero field means the backend's default, never "no limit".
type Limits struct {
	Memory int64   // bytes
	CPUs   float64 // cores
	PIDs   int     // processes and threads
}

// DefaultLimits are what zero fields of [Limits] mean.
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

// Sockets returns how many bytes sockets may hold in all, where they are counted apart from other memory.
func (l Limits) Sockets() int64 {
	const part, least = 16, 4 << 20
	return max(l.OrDefault().Memory/part, least)
}

// Spec says what a prison is made of.
type Spec struct {
	// ID names the prison on the host: control group, runtime files. It is not visible inside. Required.
	ID string
	// Name is what people see a prison called in the lists of other tools on the host, such as those of
	// containers; empty means one made of ID. Backends without such lists ignore it.
	Name string
	// Root is the absolute host path of a folder that holds the prison's system, in place of the host's own; empty
	// for that. It is shared read-only and must hold sh and git. Backends with images refuse it.
	Root string
	// Tools are shared read-only besides the system, and found by the prison's PATH before it.
	Tools []Tool
	// Image is the container image that the prison's system is taken from, and Runtime the container runtime
	// that runs it, empty for the engine's own. A backend without images refuses both.
	Image, Runtime string
	// Dir is an existing host-owned directory (mode 0700) in which the backend keeps what it
	// needs beside the workspace: sockets, locks, the prison's writable home. Required.
	Dir string
	// Workspace is the absolute host path of the only directory shared with the host.
	// It is owned by UID and GID on disk, mode 0700 (see [Backend.Prepare]). Required.
	Workspace string
	// UID and GID are the phantom's, the same numbers inside and on the host. Required.
	UID, GID int
	// User and Hostname are the login name and the host name seen inside. Required.
	User, Hostname string
	// Env is added to the fixed environment (PATH, HOME, USER, LOGNAME, SHELL, LANG), as NAME=VALUE.
	Env []string
	// ReadOnly shares the workspace read-only and keeps no home: a prison for looking, not for working.
	ReadOnly bool
	Network  Network
	Limits   Limits
}

// Tool is a program, or a folder of programs, of the host that a prison may use. Everybody must be able to read it.
type Tool struct {
	Name string // below [Tools] inside
	Path string // on the host, absolute, without links
}

// Isolation says what a started prison gives.
type Isolation struct {
	Runtime string     // the container runtime, empty for native
	Weaker  []Weakness // every measure this machine could not give
}

// Finding is one fact about this machine on which a backend's prisons depend.
type Finding struct {
	Name  string // such as "user namespaces"
	Value string // such as "yes", or a version
	// Lack says what a prison here is without because of it, as [Isolation.Weaker] would. Empty: nothing.
	Lack string
	// Mend are commands, ready to paste, that would give what is missing.
	Mend []string
}

// Traits are what a caller has to know of a backend's prisons.
type Traits struct {
	// Images says that prisons are made of container images: [Spec.Image] and [Spec.Runtime] are obeyed, [Spec.Root] is refused.
	Images bool
	// Overlay says that the workspace of a running prison is seen through an overlay: nobody outside may change it meanwhile.
	Overlay bool
	// HostKernel says that the agent's calls end in this machine's kernel.
	HostKernel bool
}

// Sweeper is a backend whose prisons outlive the folders on the host that they belong to.
type Sweeper interface {
	// SweepDeserted ends the prisons whose folders somebody has removed.
	SweepDeserted(ctx context.Context) error
}

// Backend makes prisons of one kind.
type Backend interface {
	// Name is the backend's name in flags, notes and status.
	Name() string
	// Traits describes the prisons of a runtime, which is empty where there are none.
	Traits(runtime string) Traits
	// Probe returns an *[Unavailable] if this machine cannot provide the backend's prisons
	// to the calling user. It changes nothing.
	Probe(ctx context.Context) error
	// Examine is a slower Probe that tells all it looks at, also when it fails. It changes nothing.
	Examine(ctx context.Context) ([]Finding, error)
	// Prepare makes the workspace directory: empty, mode 0700, owned by the phantom.
	// It fails if something exists at that path.
	Prepare(ctx context.Context, spec Spec) error
	// Start starts a prison that outlives the caller. It returns once Exec would work.
	Start(ctx context.Context, spec Spec) (Isolation, error)
	// Open starts a prison that ends with the calling process, whatever ends that, or with Stop.
	// It can run beside a started one on the same workspace. Used with Spec.ReadOnly.
	Open(ctx context.Context, spec Spec) (Prison, error)
	// OpenHome is Open with the home of the prison made by Start in the workspace's place: the agent's files that outlive a
	// prison, wherever the backend keeps them. [ErrNoHome] if there is none.
	OpenHome(ctx context.Context, spec Spec) (Prison, error)
	// HomeDisk names a folder of this machine's on the disk that the home is on; empty if none is known here.
	HomeDisk(spec Spec) string
	// Attach connects to the prison made by Start; [ErrNotRunning] if there is none, [ErrFrozen] if it does not answer.
	Attach(ctx context.Context, spec Spec) (Prison, error)
	// Stop ends the prison made by Start, if there is one, with every process in it, and removes
	// what it left on the host (sockets, control groups) also after crashes; the workspace
	// and the prison's writable files stay. When it returns nothing of the prison runs.
	Stop(ctx context.Context, spec Spec) error
	// Wipe removes the workspace directory and the prison's writable files without ever following
	// a link. The prison must be stopped. Nothing there is not an error.
	Wipe(ctx context.Context, spec Spec) error
	// Launched tells of the command given to [Prison.Launch], nil if there was none. It also
	// answers when the prison has ended.
	Launched(ctx context.Context, spec Spec) (*Launched, error)
	// Shown returns what the launched command showed last on its terminal, bounded, as bytes of the agent's. It also
	// answers when the prison has ended. [ErrNotLaunched] if there is none.
	Shown(ctx context.Context, spec Spec) (io.ReadCloser, error)
}

// Prison is a running prison.
type Prison interface {
	// Exec runs a process to its end and returns its exit status, 128+n when signal n ended it.
	// The error tells of a failure to run it at all ([ErrNotFound], [ErrNotExecutable],
	// [ErrNotRunning], ...). When ctx ends, the process is killed and the context's error returned.
	// Neither the caller's terminal nor its files are handed in: everything is copied through pipes.
	Exec(ctx context.Context, p Process) (status int, err error)
	// Launch runs a process detached, with a terminal of its own.
	Launch(ctx context.Context, p Process) error
	// Join shows the terminal of the launched command on p.Stdout from now on, and types p.Stdin into it; its size
	// becomes that of p.Terminal. The rest of p is unused. It returns when the command has ended, or ctx, or when
	// p.Stdout could not keep up. [ErrNotLaunched] if none runs.
	Join(ctx context.Context, p Process) error
	// Watch sends on the channel whenever one of the paths inside (files or directories, directories
	// not recursively) may have changed; sends coalesce. It uses inotify where possible and a poll once
	// a second in any case, costs no process, and tolerates paths that do not exist yet or vanish.
	// The channel is closed when ctx or the prison ends.
	Watch(ctx context.Context, paths []string) (<-chan struct{}, error)
	// Close releases the connection; a prison made by Open ends with it, completely.
	Close() error
}

// Process is one command inside a prison.
type Process struct {
	Argv []string // looked up in the prison's PATH unless it holds a slash. Required.
	Env  []string // added to the prison's environment, NAME=VALUE
	Dir  string   // working directory inside; empty means Workspace

	Stdin          io.Reader // nil: empty
	Stdout, Stderr io.Writer // nil: discarded

	// Terminal, if not nil, gives the process a pseudo terminal of the prison's: Stdin is what is
	// typed, Stdout what is shown, Stderr stays unused.
	Terminal *Terminal
}

// Merged reports whether both outputs are one writer, to which two copies at a time could not write.
func (p Process) Merged() bool {
	defer func() { _ = recover() }() // types that cannot be compared are different, as for os/exec
	return p.Stdout != nil && p.Stdout == p.Stderr
}

// Size is a terminal's size in characters.
type Size struct{ Rows, Cols uint16 }

// Terminal is how a process's pseudo terminal looks.
type Terminal struct {
	Size   Size
	Resize <-chan Size // later sizes; may be nil
	Term   string      // value of TERM inside; empty means xterm-256color
}

// Launched is the state of a detached command.
type Launched struct {
	Argv   []string
	Exited bool
	Status int // exit status once Exited; 128+n for signal n, also when the prison's end killed it (137)
}
