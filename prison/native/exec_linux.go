package native

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// started is a process inside together with init's ends of what it is connected to.
type started struct {
	pid    int
	exited <-chan int
	ends   []*os.File // for the caller: the pipes asked for, in order, or the terminal
}

// exec runs a process for the caller at the other end of c and ends it when the caller goes.
func (s *server) exec(c conn, r request) {
	p, code, err := s.start(r)
	if err != nil {
		c.send(reply{Error: err.Error(), Code: code})
		return
	}
	err = c.pass(p.ends...)
	closeAll(p.ends)
	if err != nil {
		s.procs.kill(p.pid)
		return
	}
	select {
	case status := <-p.exited:
		c.send(reply{Status: status})
	case <-untilGone(c):
		s.procs.kill(p.pid)
		c.send(reply{Status: <-p.exited}) // the caller may have closed its sending side only
	}
}

// pass answers that a thing was started, with descriptors. Those in flight are counted for the uid (unix(7),
// ETOOMANYREFS), which is the agent's: without any the answer gets through.
func (c conn) pass(files ...*os.File) error {
	err := c.send(reply{}, files...)
	if errors.Is(err, unix.ETOOMANYREFS) {
		c.send(reply{Error: err.Error(), Code: codeFlooded})
	}
	return err
}

// start looks the command up and starts it on new pipes or a new terminal.
func (s *server) start(r request) (p started, code string, err error) {
	if len(r.Argv) == 0 {
		return p, "", errors.New("empty command")
	}
	dir := r.Dir
	if dir == "" {
		dir = prison.Workspace
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return p, "", fmt.Errorf("working directory %q: %w", dir, errors.Join(err, unix.ENOTDIR))
	}
	env := mergeEnv(s.Env, r.Env)
	path, code := lookup(r.Argv[0], dir, getenv(env, "PATH"))
	if code != "" {
		return p, code, errors.New(cmp.Or(r.Argv[0], `""`)) // the code says why
	}
	files, ends, err := streams(r)
	if err != nil {
		return p, "", err
	}
	defer closeAll(files)
	if r.Terminal != nil {
		env = mergeEnv(s.Env, []string{"TERM=" + r.Terminal.Term}, r.Env)
	}
	p.ends = ends
	p.pid, p.exited, err = s.procs.start(path, r.Argv, env, dir, files, r.Terminal != nil)
	if err != nil {
		closeAll(ends)
		return p, execCode(err), fmt.Errorf("%s: %w", r.Argv[0], err)
	}
	return p, "", nil
}

func execCode(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT):
		return codeNotFound // the interpreter that a script names
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EPERM):
		return codeNotExecutable
	}
	return ""
}

// streams makes standard input, output and error of a process and the ends that the caller gets.
// They are made inside and not by the caller: a process may reopen /dev/stdout by name, which its
// owner's uid decides on.
func streams(r request) (files, ends []*os.File, err error) {
	if r.Terminal != nil {
		return terminal(*r.Terminal)
	}
	defer func() {
		if err != nil {
			closeAll(files)
			closeAll(ends)
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

// pipe is os.Pipe with blocking ends: they are for others, not for this runtime's poller.
func pipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// terminal opens a pseudo terminal of the prison's own, see pts(4).
func terminal(t terminalRequest) (files, ends []*os.File, err error) {
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
