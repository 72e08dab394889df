package inside

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// copy copies the command's output to the end, and starts to copy its input. It returns only errors of the caller's writers. An error of
// the stream appears in the result of the command.
func (x *execution) copy() error {
	defer close(x.said)
	if x.Terminal != nil {
		return x.copyTerminal()
	}
	go x.feed()
	out := &broken{w: &answered{said: x.said, w: x.out}}
	err := &broken{w: x.withoutLoss(cmp.Or(x.Stderr, io.Discard))}
	stdcopy.StdCopy(out, err, x.stream.Reader) //nolint:errcheck // errors of the writers are in out and err
	if out.err != nil {
		return out.err
	}
	return err.err
}

// copyTerminal sets the size of the terminal before the command starts.
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
	// Before the script's second line, the terminal echoes the input.
	for line := ""; strings.TrimSpace(line) != "g"; {
		if line, err = readLine(x.stream.Reader); err != nil {
			return nil
		}
	}
	if x.begun != nil {
		close(x.begun)
	}
	go x.feed()
	go x.passSizes(resizing, prison.Size{}) // the first size is set; callers that join set their own
	out := &broken{w: x.withoutLoss(x.out)}
	io.Copy(out, x.stream.Reader) //nolint:errcheck // see copy
	return out.err
}

// sizePauses are the times after which a size is set again, because Podman's conmon drops a size that arrives together with another one.
// Setting the present size changes nothing.
var sizePauses = []time.Duration{100 * time.Millisecond, 400 * time.Millisecond}

// passSizes sets each later size, and sets it again after sizePauses. again is a size to set again at first, or zero for none.
func (x *execution) passSizes(ctx context.Context, again prison.Size) {
	sizes := x.Terminal.Resize
	pause := time.NewTimer(sizePauses[0])
	defer pause.Stop()
	for n := 0; ; {
		select {
		case size, open := <-sizes:
			if !open {
				sizes = nil
				continue
			}
			again, n = size, 0
		case <-pause.C:
			n++
		case <-ctx.Done():
			return
		}
		x.resize(ctx, again)
		if n < len(sizePauses) {
			pause.Reset(sizePauses[n])
		}
	}
}

// resize sets the size of the terminal, if the size is not zero.
func (x *execution) resize(ctx context.Context, s prison.Size) {
	if s == (prison.Size{}) {
		return
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	// the terminal may have ended
	x.ContainerExecResize(bounded, x.id, container.ResizeOptions{Height: uint(s.Rows), Width: uint(s.Cols)}) //nolint:errcheck
}

// maxAnswer is longer than every answer of our scripts. The limit is needed because the agent can write to the same
// output.
const maxAnswer = 256

// readLine reads a line, which may not be longer than the reader's buffer.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	return string(line), err
}

// answered passes on what is written, without the first line, which is the script's answer. If that line is too long, the answer is empty.
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

// Hear attaches to the first process of a container that is about to start. line waits for the first line of output, and returns an empty
// line if there is none. leave ends the wait.
func Hear(ctx context.Context, e *dialect.Engine, id string) (line func() string, leave func(), err error) {
	bounded, cancel := context.WithTimeout(ctx, dialect.StartPatience)
	first, err := e.ContainerAttach(bounded, id, container.AttachOptions{Stream: true, Stdout: true})
	if err != nil {
		cancel()
		return nil, nil, e.Failed(ctx, "attach to container", err)
	}
	context.AfterFunc(bounded, first.Close)
	said := make(chan string, 1)
	go func() {
		defer close(said)
		// line reports the end of the stream
		stdcopy.StdCopy(&answered{said: said, w: io.Discard}, io.Discard, first.Reader) //nolint:errcheck
	}()
	return func() string { return <-said }, cancel, nil
}

// broken records the first error of a writer, which must not be taken for an error of the stream.
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

// withoutLoss returns a writer that passes on what is written to w, without the text that gVisor's runtime writes when the container ends
// before the command. It notes that text in x.
func (x *execution) withoutLoss(w io.Writer) io.Writer { return &lossFilter{x, w} }

type lossFilter struct {
	x *execution
	w io.Writer
}

// lossText begins the runtime's text. The container's id is in it, too.
const lossText = "waiting on pid "

func (f *lossFilter) Write(p []byte) (int, error) {
	before, after, found := bytes.Cut(p, []byte(lossText))
	if !found || !bytes.Contains(after, []byte(f.x.ID)) {
		return f.w.Write(p)
	}
	f.x.torn.Store(true)
	if n, err := f.w.Write(before); err != nil {
		return n, err
	}
	return len(p), nil
}
