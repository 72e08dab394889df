package docker

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// copy copies what the command says, to the end, and starts to copy its input. An error is one of the caller's
// writers: what is wrong with the stream shows in how the command ended.
func (x *execution) copy() error {
	defer close(x.said)
	if x.Terminal != nil {
		return x.copyTerminal()
	}
	go x.feed()
	out := &broken{w: &answered{said: x.said, w: x.out}}
	err := &broken{w: orDiscard(x.Stderr)}
	stdcopy.StdCopy(out, err, x.stream.Reader) //nolint:errcheck // see above
	if out.err != nil {
		return out.err
	}
	return err.err
}

// copyTerminal gives the terminal its size before the command starts.
func (x *execution) copyTerminal() error {
	answer, err := readLine(x.stream.Reader)
	if err != nil {
		return nil
	}
	answer = strings.TrimSpace(answer)
	x.said <- answer
	if what(answer) != saysRuns {
		return nil
	}
	resizing, stop := context.WithCancel(context.Background())
	defer stop()
	x.resize(resizing, x.Terminal.Size)
	if _, err := io.WriteString(x.stream.Conn, "\n"); err != nil {
		return nil
	}
	// What comes before the script's second line is the echo of the first.
	for line := ""; strings.TrimSpace(line) != "g"; {
		if line, err = readLine(x.stream.Reader); err != nil {
			return nil
		}
	}
	if x.begun != nil {
		close(x.begun)
	}
	go x.feed()
	go x.follow(resizing)
	out := &broken{w: x.out}
	io.Copy(out, x.stream.Reader) //nolint:errcheck // see copy
	return out.err
}

// follow passes later sizes on.
func (x *execution) follow(ctx context.Context) {
	for {
		select {
		case size, open := <-x.Terminal.Resize:
			if !open {
				return
			}
			x.resize(ctx, size)
		case <-ctx.Done():
			return
		}
	}
}

// resize sets the terminal's size. A terminal that is gone needs none.
func (x *execution) resize(ctx context.Context, s prison.Size) {
	if s == (prison.Size{}) {
		return
	}
	bounded, cancel := call(ctx)
	defer cancel()
	x.ContainerExecResize(bounded, x.id, container.ResizeOptions{Height: uint(s.Rows), Width: uint(s.Cols)}) //nolint:errcheck // see above
}

// maxAnswer is longer than every line that a script of ours says. The agent can write where the script does.
const maxAnswer = 256

// readLine reads a line, which is no longer than the reader's own memory.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	return string(line), err
}

// answered takes the script's answer, the first line, out of what is written. A line that is too long is none.
type answered struct {
	said chan<- string
	line []byte
	done bool
	w    io.Writer
}

func (a *answered) Write(p []byte) (int, error) {
	if a.done {
		return a.w.Write(p)
	}
	begin, rest, ends := bytes.Cut(p, []byte("\n"))
	a.line = append(a.line, begin[:min(len(begin), maxAnswer+1-len(a.line))]...)
	tooLong := len(a.line) > maxAnswer
	if !ends && !tooLong {
		return len(p), nil
	}
	if tooLong {
		a.line = nil
	}
	a.done = true
	a.said <- string(a.line)
	if len(rest) > 0 {
		n, err := a.w.Write(rest)
		return len(p) - len(rest) + n, err
	}
	return len(p), nil
}

// hear attaches to a first process that is about to start. line waits for the first line that it says, and is empty if there is none.
func (e *engine) hear(ctx context.Context, id string) (line func() string, leave func(), err error) {
	bounded, cancel := context.WithTimeout(ctx, startPatience)
	first, err := e.ContainerAttach(bounded, id, container.AttachOptions{Stream: true, Stdout: true})
	if err != nil {
		cancel()
		return nil, nil, e.failed(ctx, "attach to container", err)
	}
	context.AfterFunc(bounded, first.Close)
	said := make(chan string, 1)
	go func() {
		defer close(said)
		stdcopy.StdCopy(&answered{said: said, w: io.Discard}, io.Discard, first.Reader) //nolint:errcheck // its end says the same
	}()
	return func() string { return <-said }, cancel, nil
}

// broken remembers the first error of a writer, to tell it from those of the stream.
type broken struct {
	w   io.Writer
	err error
}

func (b *broken) Write(p []byte) (int, error) {
	n, err := b.w.Write(p)
	if err != nil {
		b.err = err
	}
	return n, err
}
