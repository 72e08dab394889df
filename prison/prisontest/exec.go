package prisontest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

func execs(t *testing.T, x *box) {
	t.Run("status", func(t *testing.T) { execStatus(t, x) })
	t.Run("errors", func(t *testing.T) { execErrors(t, x) })
	t.Run("streams", func(t *testing.T) { execStreams(t, x) })
	t.Run("files", func(t *testing.T) { execFiles(t, x) })
	t.Run("surroundings", func(t *testing.T) { execSurroundings(t, x) })
	t.Run("cancel", func(t *testing.T) { execCancel(t, x) })
	t.Run("refused", func(t *testing.T) { execRefused(t, x) })
	t.Run("background", func(t *testing.T) { execBackground(t, x) })
	t.Run("orphans", func(t *testing.T) { execOrphans(t, x) })
	t.Run("many", func(t *testing.T) { execMany(t, x) })
}

func execStatus(t *testing.T, x *box) {
	for script, want := range map[string]int{
		"true": 0, "exit 1": 1, "exit 255": 255, "kill -KILL $$": 137, "kill -TERM $$": 143,
	} {
		if got := x.sh(t, script).status; got != want {
			t.Errorf("%s: status %d, want %d", script, got, want)
		}
	}
}

func execErrors(t *testing.T, x *box) {
	x.must(t, "printf '#!/bin/sh\n' > plain; mkdir folder")
	for name, want := range map[string]error{
		"no-such-command": prison.ErrNotFound, "/no/such/file": prison.ErrNotFound, "": prison.ErrNotFound,
		"./plain": prison.ErrNotExecutable, "./folder": prison.ErrNotExecutable,
	} {
		if _, err := x.Exec(t.Context(), prison.Process{Argv: []string{name}}); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}
	if _, err := x.Exec(t.Context(), prison.Process{Argv: []string{"true"}, Dir: "/no/such/folder"}); err == nil {
		t.Error("a working directory that does not exist: no error")
	}
	if _, err := x.Exec(t.Context(), prison.Process{}); err == nil {
		t.Error("no command: no error")
	}
}

func execStreams(t *testing.T, x *box) {
	r := x.sh(t, "echo out; echo err >&2")
	if r.out != "out" || r.errOut != "err" {
		t.Errorf("streams: %+v", r)
	}
	random := make([]byte, 3<<20)
	rand.Read(random)
	var back bytes.Buffer
	status, err := x.Exec(t.Context(), prison.Process{Argv: []string{"cat"}, Stdin: bytes.NewReader(random), Stdout: &back})
	if err != nil || status != 0 || !bytes.Equal(back.Bytes(), random) {
		t.Errorf("cat: status %d, %v, %d of %d bytes came back equal: %v",
			status, err, back.Len(), len(random), bytes.Equal(back.Bytes(), random))
	}
	if r := x.run(t, nil, "cat"); r.status != 0 || r.out != "" {
		t.Errorf("no input: %+v", r)
	}
	if r := x.sh(t, "echo again > /dev/stdout; echo and > /dev/stderr"); r.out != "again" || r.errOut != "and" {
		t.Errorf("streams reopened by name: %+v", r)
	}
	// Input that the process does not read must not block Exec.
	endless, w := io.Pipe()
	defer w.Close()
	if r := x.run(t, endless, "true"); r.status != 0 {
		t.Errorf("input without end: %+v", r)
	}
	for range x.rounds(20) {
		if r := x.sh(t, "head -c 100000 /dev/zero"); len(r.out) != 100000 {
			t.Fatalf("output of a quick command: %d bytes of 100000", len(r.out))
		}
	}
	var both bytes.Buffer
	_, err = x.Exec(t.Context(), prison.Process{
		Argv: []string{"sh", "-c", "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done"}, Stdout: &both, Stderr: &both,
	})
	if err != nil || both.String() != "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n" {
		t.Errorf("both streams to one writer: %v, %q", err, both.String())
	}
	if _, err := x.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", "echo x"}}); err != nil {
		t.Errorf("discarded output: %v", err)
	}
}

// execFiles uses files of the host as streams. Their content must be copied, and their descriptors must not be passed on.
func execFiles(t *testing.T, x *box) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdin, err := os.OpenFile(in, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	script := "cat; echo escaped >/proc/self/fd/0; ls -l /proc/self/fd; : <>/proc/self/fd/1 && echo reopened"
	status, err := x.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", script}, Stdin: stdin, Stdout: stdout, Stderr: stdout})
	if err != nil || status != 0 {
		t.Fatalf("status %d, %v", status, err)
	}
	shown, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(shown); !strings.HasPrefix(text, "from a file\n") || strings.Contains(text, dir) {
		t.Errorf("shown: %q", text)
	}
	if content, err := os.ReadFile(in); err != nil || string(content) != "from a file\n" {
		t.Errorf("the file that was read from: %q, %v", content, err)
	}
}

func execSurroundings(t *testing.T, x *box) {
	var out bytes.Buffer
	_, err := x.Exec(t.Context(), prison.Process{
		Argv: []string{"sh", "-c", `pwd; echo "$GREETING $HOME $USER $LOGNAME $LANG"`},
		Env:  []string{"GREETING=hi there"}, Dir: "/tmp", Stdout: &out,
	})
	want := "/tmp\nhi there /home/" + login + " " + login + " " + login + " C.UTF-8\n"
	if err != nil || out.String() != want {
		t.Errorf("%v: %q, want %q", err, out.String(), want)
	}
	if r := x.run(t, nil, "printf", "%s", "\xffé\n\x80"); r.out != "\xffé\n\x80" {
		t.Errorf("arguments that are not text came out as %q", r.out)
	}
	if got := x.must(t, "pwd; umask"); got != prison.Workspace+"\n0022" {
		t.Errorf("folder and umask: %q", got)
	}
}

func execCancel(t *testing.T, x *box) {
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	pr, pw := io.Pipe()
	go func() {
		io.ReadFull(pr, make([]byte, 2)) // wait until the command has started
		cancel()
	}()
	_, err := x.Exec(ctx, prison.Process{
		Argv: []string{"sh", "-c", "sleep 7777 & sh -c 'sleep 7777; true' & echo; echo; sleep 7777"}, Stdout: pw, Stderr: &out,
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	eventually(t, "the tree is dead", func() bool {
		return !strings.Contains(x.must(t, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; true"), "sleep 7777 ")
	})
	expired, stop := context.WithCancel(t.Context())
	stop()
	if _, err := x.Exec(expired, prison.Process{Argv: []string{"true"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
}

// refusing is a writer that fails as on a full disk.
type refusing struct{}

var errFull = errors.New("no room")

func (refusing) Write([]byte) (int, error) { return 0, errFull }

// execRefused checks that a command ends if its output cannot be written, even if it writes without end, and that Exec does not wait for
// it.
func execRefused(t *testing.T, x *box) {
	if _, err := x.Exec(t.Context(), prison.Process{Argv: []string{"yes", "5555"}, Stdout: refusing{}}); !errors.Is(err, errFull) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	eventually(t, "the command is dead", func() bool {
		return !strings.Contains(x.must(t, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; true"), "yes 5555 ")
	})
}

// execBackground checks that Exec neither waits for a process in the background nor kills it.
func execBackground(t *testing.T, x *box) {
	r := x.sh(t, "sleep 6666 & echo $!")
	x.must(t, "kill -0 "+r.out+" && kill "+r.out)
}

// execOrphans checks that orphaned processes are reaped.
func execOrphans(t *testing.T, x *box) {
	x.must(t, "for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.01 & ) ; done")
	eventually(t, "no zombies", func() bool {
		return x.must(t, "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' || true") == "0"
	})
}

func execMany(t *testing.T, x *box) {
	var wg sync.WaitGroup
	problems := make(chan string, 1000)
	for worker := range 20 {
		wg.Go(func() {
			for i := range x.rounds(4) {
				var out bytes.Buffer
				want := fmt.Sprintf("%d.%d", worker, i)
				status, err := x.Exec(t.Context(), prison.Process{
					Argv: []string{"sh", "-c", "echo " + want + "; exit " + fmt.Sprint(i)}, Stdout: &out,
				})
				if err != nil || status != i || out.String() != want+"\n" {
					problems <- fmt.Sprintf("%s: %v, status %d, %q", want, err, status, out.String())
				}
			}
		})
	}
	wg.Wait()
	close(problems)
	for p := range problems {
		t.Error(p)
	}
}
