package inside

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// started is a process inside, with init's ends of its streams.
type started struct {
	pid    int
	exited <-chan int
	ends   []*os.File // for the caller: the requested pipes in order, or the terminal
}

// exec runs a process for the caller at the other end of c, and kills the process when the caller disconnects.
func (s *server) exec(c wire.Conn, r wire.Request) {
	p, code, err := s.start(r)
	if err != nil {
		c.Send(wire.Reply{Error: err.Error(), Code: code})
		return
	}
	err = c.Pass(p.ends...)
	wire.CloseAll(p.ends)
	if err != nil {
		s.kill(p.pid, r)
		return
	}
	select {
	case status := <-p.exited:
		c.Send(wire.Reply{Status: status})
	case hangUp := <-c.Gone():
		if hangUp && !r.Frozen {
			s.hangUp(p.pid)
		}
		s.kill(p.pid, r)
		c.Send(wire.Reply{Status: <-p.exited}) // the caller may have closed only its sending side, and still wait for the status
	}
}

// hangUp sends SIGHUP to a process with its session and its descendants, as the kernel does when a terminal is closed. It returns when
// they are dead, and after [prison.HangupGrace] at the latest. It sends no signal during a freeze.
func (s *server) hangUp(pid int) {
	s.starting.RLock()
	told := s.procs.hangUp(pid)
	s.starting.RUnlock()
	for end := time.Now().Add(prison.HangupGrace); !allDead(told) && time.Now().Before(end); {
		time.Sleep(hangupPoll)
	}
}

// hangupPoll is the interval for checking whether hung up processes are dead.
const hangupPoll = 10 * time.Millisecond

// kill ends a process with its descendants. Frozen processes end after the thaw: otherwise, a [guard] could not know why they are gone.
func (s *server) kill(pid int, r wire.Request) {
	if !r.Frozen {
		s.starting.RLock()
		defer s.starting.RUnlock()
	}
	s.procs.kill(pid)
}

// start looks the command up and starts it on new pipes or a new terminal.
func (s *server) start(r wire.Request) (p started, code string, err error) {
	if len(r.Argv) == 0 {
		return p, "", errors.New("empty command")
	}
	if !r.Frozen {
		s.starting.RLock()
		defer s.starting.RUnlock()
	}
	given := s.Given
	if r.Bare {
		given = nil
	}
	var term []string
	if r.Terminal != nil {
		term = []string{"TERM=" + r.Terminal.Term}
	}
	env := mergeEnv(s.Env, given, term, r.Env)
	dir := cmp.Or(r.Dir, prison.Workspace)
	var path string
	var files []*os.File
	s.procs.agent.do(func() {
		if path, code, err = find(r.Argv[0], dir, env); err == nil {
			files, p.ends, err = streams(r)
		}
	})
	if err != nil {
		return p, code, err
	}
	defer wire.CloseAll(files)
	begin := func() (int, error) {
		p.pid, p.exited, err = s.procs.start(starting{path, r.Argv, env, dir, files, r.Terminal != nil, r.Frozen})
		return p.pid, err
	}
	s.frozen.guard.Load().start(begin) // the guard is nil if nothing is frozen
	if err != nil {
		wire.CloseAll(p.ends)
		return p, execCode(err), fmt.Errorf("%s: %w", r.Argv[0], err)
	}
	return p, "", nil
}

// find returns the path of a command to start in dir.
func find(name, dir string, env []string) (path, code string, err error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = unix.ENOTDIR
	}
	if err != nil {
		return "", "", fmt.Errorf("working directory %q: %w", dir, err)
	}
	path, code = lookup(name, dir, getenv(env, "PATH"))
	if code != "" {
		return "", code, errors.New(cmp.Or(name, `""`)) // the caller turns the code into words
	}
	return path, "", nil
}

func execCode(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT):
		return wire.NotFound // the script's interpreter does not exist
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EPERM):
		return wire.NotExecutable
	}
	return ""
}

// streams creates standard input, output and error of a process, and the ends for the caller. Init creates them, not the caller: a
// process may reopen /dev/stdout by name, and the kernel then checks the uid that owns the pipe.
func streams(r wire.Request) (files, ends []*os.File, err error) {
	if r.Terminal != nil {
		return terminal(*r.Terminal)
	}
	defer func() {
		if err != nil {
			wire.CloseAll(files)
			wire.CloseAll(ends)
		}
	}()
	stdin, writer, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	files = append(files, stdin)
	if r.Stdin {
		ends = append(ends, writer)
	} else {
		writer.Close()
	}
	for i, wanted := range []bool{r.Stdout, r.Stderr} {
		if i == 1 && r.Merged {
			files = append(files, files[1])
			continue
		}
		if !wanted {
			null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
			if err != nil {
				return files, ends, err
			}
			files = append(files, null)
			continue
		}
		reader, out, err := pipe()
		if err != nil {
			return files, ends, err
		}
		files, ends = append(files, out), append(ends, reader)
	}
	return files, ends, nil
}

// pipe is [os.Pipe] with blocking ends, since programs use these ends without the poller of Go's runtime.
func pipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// terminal opens a pseudo terminal of the prison's own, see pts(4).
func terminal(t wire.Terminal) (files, ends []*os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	master := os.NewFile(uintptr(fd), "terminal")
	defer func() {
		if err != nil {
			master.Close()
		}
	}()
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, fmt.Errorf("unlock terminal: %w", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, fmt.Errorf("number of terminal: %w", err)
	}
	size := &unix.Winsize{Row: t.Rows, Col: t.Cols}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size); err != nil {
		return nil, nil, fmt.Errorf("size of terminal: %w", err)
	}
	slave, err := unix.Open("/dev/pts/"+strconv.Itoa(number), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	tty := os.NewFile(uintptr(slave), "tty")
	return []*os.File{tty, tty, tty}, []*os.File{master}, nil
}
