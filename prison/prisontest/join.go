package prisontest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// launched starts a prison, and launches a script in it.
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

// joiner is a caller who has joined the launched command.
type joiner struct {
	show  screen
	typed *io.PipeWriter
	leave func()
	done  chan error
}

// join joins the launched command, types a line, and waits for the answer.
func join(t *testing.T, x *box, terminal *prison.Terminal) *joiner {
	t.Helper()
	stdin, typed := io.Pipe()
	ctx, leave := context.WithCancel(t.Context())
	j := &joiner{typed: typed, leave: leave, done: make(chan error, 1)}
	go func() { j.done <- x.Join(ctx, prison.Process{Stdin: stdin, Stdout: &j.show, Terminal: terminal}) }()
	j.typeLine("here")
	eventually(t, "the caller has joined", j.show.shows("got here 31 62\r\n"))
	return j
}

func (j *joiner) typeLine(line string) { io.WriteString(j.typed, line+"\n") }

// joins checks that several callers can read and type at the same time.
func joins(t *testing.T, b prison.Backend, o Options) {
	x := launched(t, b, o, `stty -echo; until [ "$(stty size)" = "31 62" ]; do sleep 0.02; done; while read -r l; do echo "got $l $(stty size)"; test "$l" = end && exit 4; done`)
	if shown, err := b.Shown(t.Context(), x.spec); err != nil {
		t.Errorf("shown before it shows anything: %v", err)
	} else {
		shown.Close()
	}
	all := []*joiner{
		join(t, x, &prison.Terminal{Size: prison.Size{Rows: 31, Cols: 62}}), join(t, x, nil), join(t, x, nil), join(t, x, nil),
	}
	left := all[3]
	left.leave()
	if err := <-left.done; !errors.Is(err, context.Canceled) {
		t.Errorf("left: %v", err)
	}
	all[0].typeLine("one\nend")
	for i, j := range all[:3] {
		if err := <-j.done; err != nil {
			t.Errorf("%d: %v", i, err)
		}
		if got := j.show.String(); !strings.HasSuffix(got, "got one 31 62\r\ngot end 31 62\r\n") {
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

// joinStuck joins without reading, and checks that the command continues.
func joinStuck(t *testing.T, b prison.Backend, o Options) {
	x := launched(t, b, o, `read -r l; i=0; while [ $i -lt 60 ]; do head -c 100000 /dev/zero | tr '\0' x; i=$((i+1)); done; exit 6`)
	until := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- x.Join(t.Context(), prison.Process{Stdin: strings.NewReader("go\n"), Stdout: stuck{until}})
	}()
	eventually(t, "the command ends, although a caller does not read", func() bool {
		l, err := b.Launched(t.Context(), x.spec)
		if err != nil {
			t.Fatal(err)
		}
		return l.Exited
	})
	close(until)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
