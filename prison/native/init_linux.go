package native

import (
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/prison"
)

// initConfig is all that init knows.
type initConfig struct {
	Env     []string
	Weaker  []prison.Weakness
	Listens bool
}

// server is init at work: it answers one request per connection.
type server struct {
	initConfig
	link   conn // to the keeper, or to the process that opened the prison
	sendMu sync.Mutex
	procs  *processes
	quiet  *time.Timer // runs out when nothing was asked for a while

	launchMu sync.Mutex
	launched *shared       // the terminal of a launched command that runs
	noted    chan struct{} // the keeper has written down that it was started
}

// request asks init for one thing.
type request struct {
	Kind     string
	Argv     []string         `json:",omitempty"`
	Env      []string         `json:",omitempty"`
	Dir      string           `json:",omitempty"`
	Terminal *terminalRequest `json:",omitempty"`
	// Which standard streams the caller wants an end of.
	Stdin, Stdout, Stderr bool
	Merged                bool     // standard error goes where standard output goes
	Paths                 []string `json:",omitempty"`
}

type terminalRequest struct {
	Rows, Cols uint16
	Term       string
}

// acceptPause is for how long a connection waits that could not be taken.
const acceptPause = 10 * time.Millisecond

// Kinds of requests.
const (
	kindPing   = "ping"
	kindExec   = "exec"
	kindLaunch = "launch"
	kindJoin   = "join"
	kindWatch  = "watch"
)

// reply answers: first that the thing was started, with descriptors, then how it ended.
type reply struct {
	Status int
	Code   string `json:",omitempty"` // codeNotFound, codeNotExecutable
	Error  string `json:",omitempty"`
}

func initMain(config []byte, _ int) int {
	becomeNameless()
	s := &server{procs: newProcesses(), noted: make(chan struct{}, 1), quiet: time.AfterFunc(restAfter, rest)}
	if json.Unmarshal(config, &s.initConfig) != nil {
		return 1
	}
	s.Env = unpackAll(s.Env)
	link, err := fileConn(inheritedFile(0))
	if err != nil {
		return 1
	}
	s.link = link
	ignoreSignals()
	go s.procs.reap()
	if s.Listens {
		l, err := fileConn(inheritedFile(1))
		if err != nil {
			return 1
		}
		go s.accept(l)
	}
	if s.tell(announcement{Weaker: s.Weaker}) != nil {
		return 1
	}
	s.Weaker = nil
	rest()
	s.serveLink()
	return 0 // and with PID 1 every process here ends
}

// becomeNameless hides what the phantom could read about PID 1: with dumpable everything ptrace(2) would allow. The
// names of its threads, execve(2) took from the link.
func becomeNameless() {
	os.Remove(initLink)
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) //nolint:errcheck // it cannot fail with these
}

// ignoreSignals keeps signals sent from inside from ending PID 1 in the runtime's default way, and
// gives processes the default actions for those that the caller ignored.
func ignoreSignals() {
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM,
		unix.SIGPIPE, unix.SIGALRM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	// These the runtime takes for faults of its own, depending on how they were sent. Without a handler of PID 1's the kernel drops
	// what comes from inside, see signal(7) and pid_namespaces(7), and a fault still ends it.
	for _, s := range []unix.Signal{
		unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGSTKFLT, unix.SIGSYS,
	} {
		// At least a struct sigaction of the kernel's, on every processor.
		var defaultAction [64]byte
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&defaultAction)), 0, 8, 0, 0) //nolint:errcheck // these signals there are
	}
}

// serveLink waits for the other side's end. Until then it may hand over connections, each as one
// end of a socket pair.
func (s *server) serveLink() {
	for {
		var a announcement
		files, err := s.link.recv(&a)
		if err != nil {
			return
		}
		if a.Noted {
			select {
			case s.noted <- struct{}{}:
			default:
			}
		}
		for _, f := range files {
			if c, err := fileConn(f); err == nil {
				go s.serve(c)
			}
		}
	}
}

// accept serves whoever connects. When there are too many to take another, some are waited for.
func (s *server) accept(l conn) {
	for {
		c, err := l.accept()
		if err != nil {
			time.Sleep(acceptPause)
			continue
		}
		go s.serve(c)
	}
}

// tell sends to the keeper.
func (s *server) tell(a announcement) error {
	s.sendMu.Lock()
	defer s.sendMu.Unlock()
	return s.link.send(a)
}

func (s *server) serve(c conn) {
	defer c.Close()
	defer s.quiet.Reset(restAfter)
	var r request
	files, err := c.recv(&r)
	closeAll(files)
	if err != nil {
		return
	}
	r = r.unpack()
	switch r.Kind {
	case kindPing:
		c.send(reply{})
	case kindExec:
		s.exec(c, r)
	case kindLaunch:
		s.launch(c, r)
	case kindJoin:
		s.join(c)
	case kindWatch:
		watch(c, r.Paths)
	default:
		c.send(reply{Error: "unknown request " + r.Kind})
	}
}

// untilGone returns a channel that closes when the other side hangs up.
func untilGone(c conn) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		io.Copy(io.Discard, c) //nolint:errcheck // the end of it is all that counts
	}()
	return gone
}
