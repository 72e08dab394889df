package prisontest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// screen collects the output of a terminal. Several goroutines may use it at the same time.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func (s *screen) shows(text string) func() bool {
	return func() bool { return strings.Contains(s.String(), text) }
}

func terminals(t *testing.T, x *box) {
	t.Run("interactive", func(t *testing.T) { terminalSession(t, x) })
	t.Run("interrupt", func(t *testing.T) { terminalInterrupt(t, x) })
	t.Run("cancel", func(t *testing.T) { terminalCancel(t, x) })
	t.Run("whole output", func(t *testing.T) { terminalOutput(t, x) })
}

// terminalOutput checks that the last output of a quick command is not lost.
func terminalOutput(t *testing.T, x *box) {
	for range x.rounds(30) {
		var show screen
		status, err := x.Exec(t.Context(), prison.Process{
			Argv: []string{"sh", "-c", "head -c 20000 /dev/zero | tr '\\0' x; exit 3"}, Stdout: &show, Terminal: &prison.Terminal{},
		})
		if err != nil || status != 3 || len(show.String()) != 20000 {
			t.Fatalf("status %d, %v, %d bytes of 20000", status, err, len(show.String()))
		}
	}
}

func terminalSession(t *testing.T, x *box) {
	keys, typed := io.Pipe()
	resize := make(chan prison.Size)
	var show screen
	done := make(chan int, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		status, err := x.Exec(ctx, prison.Process{
			Argv: []string{"sh", "-c", `test -t 0 && test -t 1 && test -t 2 && echo "tty $TERM"; stty size
				until [ "$(stty size)" = "50 100" ]; do sleep 0.02; done; read line; stty size; echo "got $line"; exit 7`},
			Stdin: keys, Stdout: &show,
			Terminal: &prison.Terminal{Size: prison.Size{Rows: 40, Cols: 120}, Resize: resize, Term: "vt100"},
		})
		if err != nil {
			t.Errorf("terminal: %v", err)
		}
		done <- status
	}()
	eventually(t, "the terminal has its size", show.shows("tty vt100\r\n40 120\r\n"))
	resize <- prison.Size{Rows: 50, Cols: 100}
	io.WriteString(typed, "hello\n")
	if status := <-done; status != 7 {
		t.Errorf("status %d, want 7", status)
	}
	for _, want := range []string{"hello\r\n", "50 100\r\n", "got hello\r\n"} {
		if !strings.Contains(show.String(), want) {
			t.Errorf("the terminal showed %q, without %q", show.String(), want)
		}
	}
}

func terminalInterrupt(t *testing.T, x *box) {
	keys, typed := io.Pipe()
	var show screen
	done := make(chan int, 1)
	go func() {
		status, err := x.Exec(t.Context(), prison.Process{
			Argv:  []string{"sh", "-c", "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done"},
			Stdin: keys, Stdout: &show, Terminal: &prison.Terminal{},
		})
		if err != nil {
			t.Errorf("terminal: %v", err)
		}
		done <- status
	}()
	eventually(t, "it is ready", show.shows("ready"))
	io.WriteString(typed, "\x03")
	if status := <-done; status != 9 || !strings.Contains(show.String(), "caught") {
		t.Errorf("^C: status %d, shown %q", status, show.String())
	}
}

func terminalCancel(t *testing.T, x *box) {
	ctx, cancel := context.WithCancel(t.Context())
	var show screen
	done := make(chan error, 1)
	go func() {
		_, err := x.Exec(ctx, prison.Process{
			Argv: []string{"sh", "-c", "echo ready; sleep 5555"}, Stdout: &show, Terminal: &prison.Terminal{},
		})
		done <- err
	}()
	eventually(t, "it is ready", show.shows("ready"))
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	eventually(t, "the command is dead", func() bool {
		return x.must(t, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 555[5] ' || true") == "0"
	})
}
