package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Process runs a program in a prison to its end and returns its exit status.
type Process func(ctx context.Context, argv []string, in io.Reader, out, err io.Writer) (int, error)

// check runs a program. An exit status other than 0 is an error with the program's error output.
func (run Process) check(ctx context.Context, argv []string, in io.Reader, out io.Writer) error {
	var said bytes.Buffer
	status, err := run(ctx, argv, in, out, &bounded{&said, saidLimit})
	if err == nil && status != 0 {
		err = fmt.Errorf("exit status %d: %q", status, said.String())
	}
	return err
}

// inside is the path inside to which Open copies this program. A prison hides this program from the agent, so it must be copied in.
const inside = "/tmp/tree"

// Client sends requests to a process that [Serve] runs inside.
type Client struct {
	r      *reader
	w      writer
	cancel context.CancelFunc
	in     *io.PipeWriter
	out    *io.PipeReader
	done   chan struct{}
	err    error // the error of the process, once done is closed
}

// Open copies this program into a prison in which no process of the agent runs, and starts it there to serve the folder at path, see
// [Reexec].
func Open(ctx context.Context, run Process, path string) (*Client, error) {
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("open this program: %w", err)
	}
	defer program.Close()
	if err := run.check(ctx, []string{"sh", "-c", `umask 077 && cat >"$1" && chmod 500 "$1"`, "sh", inside}, program, nil); err != nil {
		return nil, fmt.Errorf("bring this program into the prison: %w", err)
	}
	return Start(ctx, run, inside, argument, path), nil
}

// OpenOwn does what Open does in a prison that already contains this program, at the path program.
func OpenOwn(ctx context.Context, run Process, program, path string) *Client {
	return Start(ctx, run, program, argument, path)
}

// Start starts a process that calls [Serve].
func Start(ctx context.Context, run Process, argv ...string) *Client {
	ctx, cancel := context.WithCancel(ctx)
	requests, in := io.Pipe()
	out, answers := io.Pipe()
	c := &Client{r: newReader(out), w: newWriter(in), cancel: cancel, in: in, out: out, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = run.check(ctx, argv, requests, answers)
		answers.CloseWithError(errors.Join(c.err, io.ErrUnexpectedEOF))
		requests.CloseWithError(errors.Join(c.err, io.ErrClosedPipe))
	}()
	return c
}

// saidLimit is how many bytes of the error output of a process inside are kept. The image may be hostile.
const saidLimit = 1 << 12

// bounded keeps the first left bytes that are written, and drops the others.
type bounded struct {
	*bytes.Buffer
	left int // bytes
}

func (b *bounded) Write(p []byte) (int, error) {
	part := p[:min(len(p), b.left)]
	b.left -= len(part)
	b.Buffer.Write(part)
	return len(p), nil
}

// endTime is how long the process inside may take to end after its input has ended.
const endTime = 5 * time.Second

// Close ends the process inside.
func (c *Client) Close() error {
	c.in.Close()
	timer := time.AfterFunc(endTime, c.cancel)
	defer timer.Stop()
	<-c.done
	c.cancel()
	return c.err
}

// asking sends a request, and reads the answer at the same time.
func (c *Client) asking(send func() error, receive func() error) error {
	var wait sync.WaitGroup
	var sendErr error
	wait.Go(func() { sendErr = errors.Join(send(), c.w.Flush()) })
	err := receive()
	if err == nil {
		err = c.r.err
	}
	if err != nil { // otherwise the sender and the process could wait for each other for ever
		c.cancel()
		c.out.CloseWithError(err)
		c.in.CloseWithError(err)
		<-c.done
	}
	wait.Wait()
	return errors.Join(err, sendErr)
}

// Walk calls found for each file of the workspace: a folder before its entries, which are sorted by the bytes of their names. With opens,
// it opens files that are closed to their owner, and found gets the mode from before. If found returns an error, Walk returns that error.
func (c *Client) Walk(opens bool, found func(Entry) error) error {
	return c.asking(func() error {
		c.w.kind(askWalk)
		c.w.flag(opens)
		return nil
	}, func() error { return c.entries(isEnd, found) })
}

// entries reads the entries of a walk until it reads the byte end.
func (c *Client) entries(end byte, found func(Entry) error) error {
	var before []string // the names on the way to the previous entry, from the workspace; the next entry of the same folder must sort after it
	for {
		switch kind := c.r.kind(); {
		case c.r.err != nil || kind == end:
			return c.r.err
		case kind != isEntry:
			return errForm
		}
		e := c.r.entry()
		if c.r.err != nil {
			return c.r.err
		}
		if e.Depth > len(before) || e.Depth == 0 && before != nil || e.Depth > 0 && before == nil ||
			e.Depth > 0 && e.Depth < len(before) && before[e.Depth] >= e.Name {
			return fmt.Errorf("%w: order of %q", errForm, e.Name)
		}
		before = append(before[:e.Depth], e.Name)
		if err := found(e); err != nil {
			return err
		}
	}
}

// List walks through several folders. For each path in order, found gets its number and the folder as if it were the workspace, and then
// the folder's entries, or with deep everything below it. missing gets a path that is not a folder.
func (c *Client) List(paths []string, deep bool, found func(n int, e Entry) error, missing func(n int, reason string)) error {
	return c.asking(func() error {
		c.w.kind(askList)
		c.w.flag(deep)
		c.w.paths(paths)
		return nil
	}, func() error {
		for n := range paths {
			switch kind := c.r.kind(); {
			case c.r.err != nil:
				return c.r.err
			case kind == isError:
				missing(n, c.r.text(longestTarget))
			case kind != isData:
				return errForm
			default:
				if err := c.entries(isSame, func(e Entry) error { return found(n, e) }); err != nil {
					return err
				}
			}
			if c.r.err != nil {
				return c.r.err
			}
		}
		return c.end()
	})
}

// Content is the content of a regular file. It must be read during the call that gets it.
type Content struct {
	Stat
	Attributes bool // the file has extended attributes
	Dated      bool // a write through a shared mapping changes ctime, if it is the first since the page was written to the disk
	io.Reader       // returns Size bytes
}

// Read reads regular files. For each path in order, it calls got with the content, or with the reason why the file cannot be read. Then
// it calls same, which gets whether the file did not change during the reading. Both get the number of the path.
func (c *Client) Read(paths []string, got func(n int, content *Content, reason string) error, same func(n int, same bool)) error {
	return c.asking(func() error {
		c.w.kind(askRead)
		c.w.paths(paths)
		return nil
	}, func() error {
		for n := range paths {
			if err := c.readOne(n, got, same); err != nil {
				return err
			}
		}
		return c.end()
	})
}

func (c *Client) readOne(n int, got func(n int, content *Content, reason string) error, same func(n int, same bool)) error {
	switch c.r.kind() {
	case isError:
		reason := c.r.text(longestTarget)
		if c.r.err != nil {
			return c.r.err
		}
		return got(n, nil, reason)
	case isData:
	default:
		return errors.Join(c.r.err, errForm)
	}
	content := Content{Stat: c.r.stat(), Attributes: c.r.number() == 1, Dated: c.r.number() == 1}
	if c.r.err != nil || content.Size < 0 {
		return errors.Join(c.r.err, errForm)
	}
	body := &io.LimitedReader{R: c.r, N: content.Size}
	content.Reader = body
	if err := got(n, &content, ""); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	if body.N > 0 {
		return io.ErrUnexpectedEOF
	}
	kind := c.r.kind()
	if kind != isSame && kind != isOther {
		return errors.Join(c.r.err, errForm)
	}
	same(n, kind == isSame)
	return nil
}

// Ready returns when the process inside has started.
func (c *Client) Ready() error { return c.Read(nil, nil, nil) }

func (c *Client) end() error {
	if kind := c.r.kind(); c.r.err != nil || kind != isEnd {
		return errors.Join(c.r.err, errForm)
	}
	return nil
}

// Apply does the operations in their order. content returns the content for the nth operation, if that is a [Write]. failed is called for
// each operation that fails.
func (c *Client) Apply(operations []Operation, content func(n int) (io.ReadCloser, error), failed func(n int, reason string)) error {
	return c.asking(func() error {
		c.w.kind(askApply)
		for n, o := range operations {
			c.w.kind(isPath)
			c.w.operation(o)
			if o.Action != Write {
				continue
			}
			if err := c.send(n, o, content); err != nil {
				c.cancel() // the process inside waits for content that will not come
				return err
			}
		}
		c.w.kind(isEnd)
		return nil
	}, func() error {
		for {
			switch c.r.kind() {
			case isEnd:
				return nil
			case isError:
				n, reason := c.r.number(), c.r.text(longestTarget)
				if c.r.err != nil || n >= uint64(len(operations)) {
					return errors.Join(c.r.err, errForm)
				}
				failed(int(n), reason)
			default:
				return errors.Join(c.r.err, errForm)
			}
		}
	})
}

func (c *Client) send(n int, o Operation, content func(n int) (io.ReadCloser, error)) error {
	r, err := content(n)
	if err != nil {
		return err
	}
	defer r.Close()
	sent, err := io.Copy(c.w, r)
	if err == nil && sent != o.Size {
		err = fmt.Errorf("%d bytes of %d", sent, o.Size)
	}
	return err
}
