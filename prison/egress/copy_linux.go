package egress

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/waiter"
)

// maxIdle is how long a connection may be silent both ways before the engine ends it.
const maxIdle = 15 * time.Minute

// end is a connection's end in the stack.
type end struct {
	tcpip.Endpoint
	queue *waiter.Queue
}

// copyBoth copies both ways until both are at their end, or one fails.
func (e *Engine) copyBoth(f *flow, n end, near *gonet.TCPConn, far net.Conn) {
	var once sync.Once
	stop := func() {
		once.Do(func() {
			n.Abort()
			if c, ok := far.(interface{ SetLinger(int) error }); ok {
				c.SetLinger(0) //nolint:errcheck // if it fails, the connection ends without a reset
			}
			far.Close()
		})
	}
	f.stopWith(stop)
	idle := time.AfterFunc(e.idle, stop)
	defer idle.Stop()
	active := func(count *atomic.Int64) func(int) {
		return func(n int) {
			count.Add(int64(n))
			idle.Reset(e.idle)
			e.changed()
		}
	}
	var out sync.WaitGroup
	out.Go(func() {
		if copyOut(far, n, &f.size.Copies, active(&f.sent)) != nil {
			stop()
		}
	})
	if copyIn(near, far, &f.size.Copies, active(&f.received)) != nil {
		stop()
	}
	out.Wait()
}

// copyOut copies the bytes from the prison until their end, and then closes far for writing. A silent connection holds none of the buffers.
func copyOut(far net.Conn, n end, buffers *sync.Pool, active func(int)) error {
	entry, ready := waiter.NewChannelEntry(waiter.ReadableEvents | waiter.EventHUp | waiter.EventErr)
	n.queue.EventRegister(&entry)
	defer n.queue.EventUnregister(&entry)
	for {
		err, failed := passOut(far, n, buffers, active)
		switch err.(type) {
		case nil:
		case *tcpip.ErrWouldBlock:
			<-ready // also when the endpoint is aborted
			continue
		case *tcpip.ErrClosedForReceive:
			return closeWrite(far)
		default:
			return errors.New(err.String())
		}
		if failed != nil {
			return failed
		}
	}
}

// passOut copies the bytes that are there. Its large frame is not on the stack of a goroutine that waits in copyOut.
//
//go:noinline
func passOut(far net.Conn, n end, buffers *sync.Pool, active func(int)) (end tcpip.Error, failed error) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	w := tcpip.SliceWriter(*buf)
	result, end := n.Read(&w, tcpip.ReadOptions{})
	if result.Count > 0 {
		active(result.Count)
		_, failed = far.Write((*buf)[:result.Count])
	}
	return end, failed
}

// copyIn copies the bytes from the world until their end, and then closes near for writing.
func copyIn(near *gonet.TCPConn, far net.Conn, buffers *sync.Pool, active func(int)) error {
	for {
		buf, n, err := readSome(far, buffers)
		var failed error
		if n > 0 {
			active(n)
			_, failed = near.Write((*buf)[:n])
		}
		buffers.Put(buf)
		switch {
		case failed != nil:
			return failed
		case errors.Is(err, io.EOF):
			return near.CloseWrite()
		case err != nil:
			return err
		}
	}
}

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.New("a connection that cannot end in one direction")
}

// readSome reads the bytes that are there into one of the buffers. For a socket, it takes a buffer only when there is something to read.
func readSome(c net.Conn, buffers *sync.Pool) (buf *[]byte, n int, err error) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		buf = buffers.Get().(*[]byte)
		n, err = c.Read(*buf)
		return buf, n, err
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return buffers.Get().(*[]byte), 0, err
	}
	failed := raw.Read(func(fd uintptr) bool {
		buf = buffers.Get().(*[]byte)
		for {
			if n, err = unix.Read(int(fd), *buf); !errors.Is(err, unix.EINTR) {
				break
			}
		}
		if errors.Is(err, unix.EAGAIN) {
			buffers.Put(buf)
			return false
		}
		return true
	})
	switch {
	case failed != nil:
		return buffers.Get().(*[]byte), 0, failed
	case err == nil && n == 0:
		err = io.EOF
	}
	return buf, max(n, 0), err
}

// countedConn counts the bytes of a connection inside.
type countedConn struct {
	*gonet.TCPConn
	flow   *flow
	before []byte // bytes that were read already, and that Read returns first
	active func() // called when bytes were read or written
}

func (c *countedConn) Read(p []byte) (int, error) {
	if len(c.before) > 0 {
		n := copy(p, c.before)
		c.before = c.before[n:]
		c.flow.sent.Add(int64(n))
		return n, nil
	}
	n, err := c.TCPConn.Read(p)
	c.flow.sent.Add(int64(n))
	c.active()
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	c.flow.received.Add(int64(n))
	c.active()
	return n, err
}
