package execs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// folderName is the folder of the recorder's socket, in the prison's folder.
const folderName = "recorder"

// Files are the files that a recorder leaves in the folder of its prison. A folder comes after the files in it.
var Files = []string{filepath.Join(folderName, wire.SocketName), folderName, FileName, OldName, DeniedName, OldDeniedName}

// Complete returns when the record has the end of each program that has ended. It returns at the latest when the recorder has ended, and at
// once if there is none.
func Complete(ctx context.Context, dir string) error {
	c, err := wire.Dial(filepath.Join(dir, folderName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil // no recorder writes
	}
	if err != nil {
		return fmt.Errorf("ask the recorder of programs: %w", err)
	}
	defer c.Close()
	select {
	case <-c.Gone():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listenFor makes the socket to which Complete connects.
func (r *recorder) listenFor(dir string) error {
	socket, err := wire.ListenIn(filepath.Join(dir, folderName))
	if err == nil {
		r.poll.add(int(socket.Fd()), socketTag)
		r.socket = socket
	}
	return err
}

// hearReader answers a call of Complete by closing the connection. At the end of the prison, the end of this process closes it.
func (r *recorder) hearReader(proc *procfs, open bool) {
	fd, _, err := unix.Accept4(int(r.socket.Fd()), unix.SOCK_CLOEXEC)
	if err == nil && open {
		r.drain(proc)
		unix.Close(fd)
	}
}

// drain writes the ends of all programs that have ended. It first waits for the calls that are being handled, since the kernel may have
// carried them out already.
func (r *recorder) drain(proc *procfs) {
	for i := range r.shared.slots {
		now := &r.shared.slots[i].now.id
		for id := atomic.LoadUint64(now); id != 0 && atomic.LoadUint64(now) == id; time.Sleep(time.Millisecond) {
			r.flush() // the call may wait for room in the queue
		}
	}
	for _, p := range r.running() {
		if wire.HasEnded(p.fd) {
			r.died(proc, p.pid)
		}
	}
	r.flush()
}
