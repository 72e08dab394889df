package prisontest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// launched returns a prison with a launched script.
func launched(t *testing.T, b prison.Backend, o Options, script string) *box {
	t.Helper()
	x := start(t, b, o)
	if err := x.Join(t.Context(), prison.Process{}); !errors.Is(err, prison.ErrNotLaunched) {
		t.Errorf("join before anything: %v", err)
	}
	if _, err := b.Shown(t.Context(), x.spec); !errors.Is(err, prison.ErrNotLaunched) {
		t.Errorf("shown before anything: %v", err)
	}
	if err := x.Launch(t.Context(), prison.Process{Argv: []string{"sh", "-c", script}}); err != nil {
		t.Fatal(err)
	}
	return x
}

// joins lets several callers read and type at the same time.
func joins(t *testing.T, b prison.Backend, o Options) {
	x := launched(t, b, o, `stty -echo; while read -r l; do echo "got $l $(stty size)"; test "$l" = end && exit 4; done`)
	if shown, err := b.Shown(t.Context(), x.spec); err != nil {
		t.Errorf("shown before it shows anything: %v", err)
	} else {
		shown.Close()
	}
	type joiner struct {
		out  bytes.Buffer
		done chan error
	}
	var all [3]joiner
	typed, w := io.Pipe()
	for i := range all {
		j := &all[i]
		j.done = make(chan error, 1)
		q := prison.Process{Stdout: &j.out}
		if i == 0 {
			q.Stdin = typed
			q.Terminal = &prison.Terminal{Size: prison.Size{Rows: 31, Cols: 62}}
		}
		go func() { j.done <- x.Join(t.Context(), q) }()
	}
	left, leave := context.WithCancel(t.Context())
	go func() {
		time.Sleep(time.Second)
		leave()
	}()
	if err := x.Join(left, prison.Process{}); !errors.Is(err, context.Canceled) {
		t.Errorf("left: %v", err)
	}
	io.WriteString(w, "one\nend\n")
	for i := range all {
		if err := <-all[i].done; err != nil {
			t.Errorf("%d: %v", i, err)
		}
		if got := all[i].out.String(); got != "got one 31 62\r\ngot end 31 62\r\n" {
			t.Errorf("%d: %q", i, got)
		}
	}
	if l, err := b.Launched(t.Context(), x.spec); err != nil || !l.Exited || l.Status != 4 {
		t.Errorf("%+v, %v", l, err)
	}
	if err := b.Stop(t.Context(), x.spec); err != nil {
		t.Fatal(err)
	}
	shown, err := b.Shown(t.Context(), x.spec)
	if err != nil {
		t.Fatal(err)
	}
	defer shown.Close()
	if content, err := io.ReadAll(shown); err != nil || !strings.HasSuffix(string(content), "got end 31 62\r\n") {
		t.Errorf("%q, %v", content, err)
	}
}

// stuck is a writer that blocks until the channel is closed.
type stuck struct{ until chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.until
	return len(p), nil
}

// joinStuck joins without reading: the command must continue.
func joinStuck(t *testing.T, b prison.Backend, o Options) {
	x := launched(t, b, o, `read -r l; i=0; while [ $i -lt 60 ]; do head -c 100000 /dev/zero | tr '\0' x; i=$((i+1)); done; exit 6`)
	until := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- x.Join(t.Context(), prison.Process{Stdin: strings.NewReader("go\n"), Stdout: stuck{until}})
	}()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		l, err := b.Launched(t.Context(), x.spec)
		if err != nil {
			t.Fatal(err)
		}
		if l.Exited {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("a caller who does not read delays the command")
		}
	}
	close(until)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
