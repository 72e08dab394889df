package inside

import (
	"encoding/json"
	"os"
	"os/signal"
	"sync"
	"time"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// initConfig is the configuration of init.
type initConfig struct {
	Env     []string // variables of every process, in addition to Given
	Given   []string // the variables of the spec
	Weaker  []prison.Weakness
	Listens bool // serve connections to the inherited socket
	Agent   int  // the agent's uid, or 0 if init has the same uid
	Record  bool // record the programs
}

// server is the state of init, which answers one request for each connection.
type server struct {
	initConfig
	link   wire.Conn // to the keeper, or to the process that opened the prison
	sendMu sync.Mutex
	procs  *processes
	quiet  *time.Timer // expires after a time without requests
	// starting is held for reading while a process is started, and for writing while all are frozen.
	starting sync.RWMutex
	frozen   freezer

	launchMu sync.Mutex
	launched *shared       // the terminal of the running launched command
	noted    chan struct{} // receives a value when the keeper has written the command's state
}

// acceptPause is how long init waits after it could not accept a connection.
const acceptPause = 10 * time.Millisecond

// Serve is the role of init, PID 1 of a prison. It ends when its link is closed.
func Serve(config []byte, _ int) int {
	s := &server{noted: make(chan struct{}, 1), quiet: time.AfterFunc(wire.RestAfter, wire.Rest)}
	if json.Unmarshal(config, &s.initConfig) != nil {
		return 1
	}
	s.Env, s.Given = wire.UnpackAll(s.Env), wire.UnpackAll(s.Given)
	s.procs = newProcesses(phantom(s.Agent), s.Record)
	s.becomeNameless()
	link, err := wire.FileConn(wire.InheritedFile(0))
	if err != nil {
		return 1
	}
	s.link = link
	ignoreSignals()
	go s.procs.reap()
	if s.Listens {
		l, err := wire.FileConn(wire.InheritedFile(1))
		if err != nil {
			return 1
		}
		go s.accept(l)
	}
	if s.handListener() != nil || s.announce(wire.Announcement{Weaker: s.Weaker}) != nil {
		return 1
	}
	s.Weaker = nil
	s.serveLink()
	return 0 // every process in the namespace ends with PID 1
}

// becomeNameless hides what the agent could read about PID 1. While PID 1 is dumpable and has the agent's uid, the
// agent could do all that ptrace(2) allows. The names of its threads come from the link that execve(2) was called
// with.
func (s *server) becomeNameless() {
	s.procs.agent.do(func() { os.Remove(initLink) })
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) //nolint:errcheck // cannot fail with these arguments
}

// ignoreSignals keeps signals sent from inside from ending PID 1 by the default action of the runtime. It also
// restores the default actions of signals that the caller ignored, for the processes that init starts.
func ignoreSignals() {
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM,
		unix.SIGPIPE, unix.SIGALRM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	// The runtime treats these signals as faults of its own, depending on how they were sent. If PID 1 has no
	// handler, the kernel drops them when they come from inside, see signal(7) and pid_namespaces(7). A real fault
	// still ends PID 1.
	for _, s := range []unix.Signal{
		unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGSTKFLT, unix.SIGSYS,
	} {
		// At least as large as the kernel's struct sigaction on every processor.
		var defaultAction [64]byte
		// cannot fail: these signals exist
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&defaultAction)), 0, 8, 0, 0) //nolint:errcheck
	}
}

// serveLink waits until the other side closes the link. Before that, the other side may send connections, each as
// one end of a socket pair.
func (s *server) serveLink() {
	for {
		var a wire.Announcement
		files, err := s.link.Recv(&a)
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
			if c, err := wire.FileConn(f); err == nil {
				go s.serve(c)
			}
		}
	}
}

// accept serves the connections to the socket. If there are too many to accept another one, accept waits and tries again.
func (s *server) accept(l wire.Conn) {
	for {
		c, err := l.Accept()
		if err != nil {
			time.Sleep(acceptPause)
			continue
		}
		go s.serve(c)
	}
}

// announce sends an announcement to the keeper.
func (s *server) announce(a wire.Announcement, files ...*os.File) error {
	s.sendMu.Lock()
	defer s.sendMu.Unlock()
	return s.link.Send(a, files...)
}

// handListener sends the keeper the descriptor to which the kernel sends the system calls of a recorded prison. Afterwards no process
// inside has that descriptor.
func (s *server) handListener() error {
	if !s.Record {
		return nil
	}
	made := <-s.procs.listener
	if made.err != nil {
		return s.announce(wire.Announcement{Error: "record programs: " + made.err.Error()})
	}
	defer made.file.Close()
	return s.announce(wire.Announcement{Listener: true}, made.file)
}

func (s *server) serve(c wire.Conn) {
	defer c.Close()
	defer s.quiet.Reset(wire.RestAfter)
	var r wire.Request
	files, err := c.Recv(&r)
	wire.CloseAll(files)
	if err != nil {
		return
	}
	r = r.Unpack()
	switch r.Kind {
	case wire.KindPing:
		c.Send(wire.Reply{})
	case wire.KindExec:
		s.exec(c, r)
	case wire.KindLaunch:
		s.launch(c, r)
	case wire.KindJoin:
		s.join(c)
	case wire.KindWatch:
		watch(c, s.procs.agent, r.Paths)
	case wire.KindTree:
		watchTree(c, s.procs.agent)
	case wire.KindFreeze:
		s.freeze(c)
	default:
		c.Send(wire.Reply{Error: "unknown request " + r.Kind})
	}
}
