package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

func init() { scriptCommands["terminal"] = cmdTerminal }

// openTerminal opens a pseudo-terminal, pts(4).
func openTerminal() (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(ours.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)); err != nil {
		return nil, nil, err
	}
	theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	return ours, theirs, err
}

// screen collects the output of a terminal.
type screen struct {
	mu    sync.Mutex
	shown bytes.Buffer
	seen  int // the end of the last expected text
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.Write(p)
}

// passes reports whether a text is shown after the last expected text, and then moves the end behind it.
func (s *screen) passes(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := strings.Index(s.shown.String()[s.seen:], text)
	if i >= 0 {
		s.seen += i + len(text)
	}
	return i >= 0
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// terminal DIALOGUE STATUS PROGRAM ARGS runs a program on a terminal of its own. The lines of the dialogue are
// "> text" (typed, with return), "^C", "^\", "^]", "size ROWS COLS", "< text", for which it waits, and <q "text" with Go's quotes.
// "TERM" sends that signal to the program.
func cmdTerminal(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) < 3, "terminal DIALOGUE STATUS PROGRAM [ARGS]")
	ours, theirs, err := openTerminal()
	ts.Check(err)
	defer ours.Close()
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), append(environ(ts), "TERM=vt100")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	dialogue := ts.ReadFile(args[0])
	if first, rest, _ := strings.Cut(dialogue, "\n"); strings.HasPrefix(first, "size ") {
		ts.Check(converse(ours, nil, first)) // before the program starts
		dialogue = rest
	}
	show := &screen{}
	go func() { _, _ = show.readFrom(ours) }()
	ts.Check(cmd.Start())
	theirs.Close()
	status := make(chan int, 1)
	go func() {
		_ = cmd.Wait()
		status <- cmd.ProcessState.ExitCode()
	}()
	for line := range strings.Lines(dialogue) {
		if line == "TERM\n" {
			ts.Check(cmd.Process.Signal(syscall.SIGTERM))
			continue
		}
		if err := converse(ours, show, strings.TrimSuffix(line, "\n")); err != nil {
			_ = cmd.Process.Kill()
			ts.Fatalf("%v; shown so far: %q", err, show)
		}
	}
	select {
	case got := <-status:
		if strconv.Itoa(got) != args[1] {
			ts.Fatalf("exit status %d, want %s; shown: %q", got, args[1], show)
		}
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		ts.Fatalf("it does not end; shown: %q", show)
	}
}

// readFrom reads until the terminal closes (EIO).
func (s *screen) readFrom(f *os.File) (int64, error) {
	var n int64
	buffer := make([]byte, 4096)
	for {
		k, err := f.Read(buffer)
		_, _ = s.Write(buffer[:k])
		if n += int64(k); err != nil {
			return n, err
		}
	}
}

func converse(terminal *os.File, show *screen, line string) error {
	verb, text, _ := strings.Cut(line, " ")
	switch verb {
	case ">":
		_, err := terminal.WriteString(text + "\n")
		return err
	case "^C":
		_, err := terminal.WriteString("\x03")
		return err
	case "^\\":
		_, err := terminal.WriteString("\x1c")
		return err
	case "^]":
		_, err := terminal.WriteString("\x1d")
		return err
	case "size":
		var size unix.Winsize
		if _, err := fmt.Sscan(text, &size.Row, &size.Col); err != nil {
			return err
		}
		return unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &size)
	case "<q":
		text, err := strconv.Unquote(text)
		if err != nil {
			return err
		}
		return awaitText(show, text)
	case "<":
		return awaitText(show, text)
	}
	return fmt.Errorf("dialogue line %q", line)
}

// awaitText waits until a text is shown.
func awaitText(show *screen, text string) error {
	for end := time.Now().Add(patience); !show.passes(text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("it does not show %q", text)
		}
	}
	return nil
}
