package gitops

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// lateWriter does not run for a while, as a reader of git's output on a busy machine.
type lateWriter struct{ bytes.Buffer }

func (w *lateWriter) Write(p []byte) (int, error) {
	time.Sleep(endPatience + time.Second)
	return w.Buffer.Write(p)
}

// TestLateReader reads the output of git seconds after git has ended.
func TestLateReader(t *testing.T) {
	t.Parallel()
	var out lateWriter
	g := newUserGit(t.TempDir())
	if err := g.Look(t.Context(), Call{Args: []string{"version"}, Stdout: &out}); err != nil || !strings.HasPrefix(out.String(), "git version") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestInterruptReachesGitFirst interrupts git before its context ends, as ^C at a terminal can. The error is that of the context.
func TestInterruptReachesGitFirst(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, interrupt)
	err := newUserGit(t.TempDir()).Look(ctx, Call{Args: []string{"-c", "alias.interrupt=!kill -INT $PPID", "interrupt"}})
	if git := (*Error)(nil); errors.As(err, &git) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestOutputLimit checks the error of a command that printed more than its limit, whether or not git died of it.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	g := newUserGit(t.TempDir())
	for _, length := range []int{100, 10 << 20} {
		text := strings.NewReader(strings.Repeat("x\n", length/2))
		if err := g.Look(t.Context(), Call{Args: []string{"stripspace"}, Stdin: text, Stdout: io.Discard, Limit: 10}); !errors.Is(err, ErrOutput) {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

// TestProcessorTime ends a git command that computes without end, and neither one that waits nor what git starts.
func TestProcessorTime(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("no clock of another process")
	}
	dir := t.TempDir()
	g := newUserGit(dir).WithProcessor(300 * time.Millisecond)
	write := func(attributes string) {
		if err := os.WriteFile(filepath.Join(dir, ".gitattributes"), []byte(attributes), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Repeat("**/a/", 40) + "b text\n")
	err := errors.Join(g.Change(t.Context(), Call{Args: []string{"init", "-q"}}),
		g.Look(t.Context(), Call{Args: []string{"check-attr", "text", strings.Repeat("a/", 60) + "c"}, Stdout: io.Discard, For: time.Minute}))
	if !Spent(err) || !strings.HasSuffix(err.Error(), "git check-attr: it needs more processor time than allowed") {
		t.Errorf("%v; want an error about the processor time", err)
	}
	busy := "alias.busy=!i=0; while test $i -lt 500000; do i=$((i+1)); done; sleep 1"
	if err := g.Configured(busy).Look(t.Context(), Call{Args: []string{"busy"}}); err != nil {
		t.Errorf("%v; want no error for a program of the user", err)
	}
}

// TestStderrInOneLine checks that an empty line of git's does not become an empty part.
func TestStderrInOneLine(t *testing.T) {
	t.Parallel()
	var stderr Stderr
	if _, err := stderr.Write([]byte("fatal: no access\n\nPlease check\n")); err != nil || stderr.String() != "fatal: no access; Please check" {
		t.Errorf("%v, %q", err, stderr.String())
	}
}

// FuzzCapped writes any bytes to the writer that bounds git's output.
func FuzzCapped(f *testing.F) {
	f.Add([]byte("head and tail"), 5)
	f.Fuzz(func(t *testing.T, said []byte, limit int) {
		limit = max(limit, 0) % (1 << 20)
		var out bytes.Buffer
		_, err := io.Copy(CapOutput(&out, int64(limit)), struct{ io.Reader }{bytes.NewReader(said)})
		if out.Len() > limit || !bytes.HasPrefix(said, out.Bytes()) {
			t.Errorf("%d bytes came through; at most %d", out.Len(), limit)
		}
		if err == nil && out.Len() != len(said) {
			t.Errorf("%d of %d bytes, and no error", out.Len(), len(said))
		}
		var stderr Stderr
		if _, err := stderr.Write(said); err != nil && !errors.Is(err, io.ErrShortWrite) {
			t.Error(err)
		}
		if text := stderr.String(); len(text) > 64<<10 || strings.ContainsAny(text, "\x1b\a") {
			t.Errorf("%d bytes: %.200q", len(text), text)
		}
	})
}
