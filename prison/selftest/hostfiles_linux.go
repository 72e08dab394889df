package selftest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/calls"

	"golang.org/x/sys/unix"
)

// systemFile is what most systems have and hardly anybody uses: an agent may be at work.
const systemFile = "/usr/bin/csplit"

const (
	// hostLooks is how often our own file is used while somebody inside watches theirs, and watched how long that is.
	hostLooks = 5 * time.Millisecond
	watched   = 300 * time.Millisecond
)

// trySystemFiles watches and locks a system file inside while we use ours. Where they are one, inside one learns when a
// program is started outside, and outside one waits for who is inside.
func trySystemFiles(ctx context.Context, s Subject) (seen, broken string, err error) {
	file, err := os.Open(systemFile)
	if err != nil {
		return "there is none outside", "", nil
	}
	defer file.Close()
	ctx, cancel := context.WithCancel(ctx)
	locked := make(chan bool)
	go func() { locked <- useUntil(ctx, file) }()
	results, err := calls.Make(ctx, s.Prison, watchAndLock())
	cancel()
	lockedOut := <-locked
	if err != nil {
		return "", "", untried(ctx, err)
	}
	open, inotify, watch, lock, events := results[1], results[2], results[3], results[4], results[5]
	switch {
	case open == -int64(unix.ENOENT):
		return "there is none inside", "", nil
	case open != 3 || inotify != 4 || watch < 0:
		return "", "", &untriedError{reason: fmt.Sprintf("open %d, inotify %d, watch %d", open, inotify, watch)}
	}
	var can []string
	if events != 0 {
		can = append(can, "see when "+systemFile+" is opened outside")
	}
	if lock != 0 || lockedOut {
		can = append(can, "keep who locks it outside waiting")
	}
	if len(can) > 0 {
		return "", "inside one can " + strings.Join(can, " and "), nil
	}
	return "their use outside is not seen, a lock inside not felt", "", nil
}

// watchAndLock are the calls; descriptors are counted from 3 on.
func watchAndLock() []calls.Call {
	path := []byte(systemFile + "\x00")
	// struct pollfd and, 8 bytes on, struct timespec.
	wait := binary.LittleEndian.AppendUint32(nil, 4)
	wait = binary.LittleEndian.AppendUint32(wait, unix.POLLIN)
	wait = binary.LittleEndian.AppendUint64(wait, 0)
	wait = binary.LittleEndian.AppendUint64(wait, uint64(watched))
	const atCWD = ^uintptr(99) // AT_FDCWD
	return []calls.Call{
		{Number: unix.SYS_CLOSE_RANGE, Args: [6]uintptr{3, 1000}},
		{Number: unix.SYS_OPENAT, Args: [6]uintptr{atCWD, calls.Pointer, unix.O_RDONLY}, Data: path},
		{Number: unix.SYS_INOTIFY_INIT1},
		{Number: unix.SYS_INOTIFY_ADD_WATCH, Args: [6]uintptr{4, calls.Pointer, unix.IN_OPEN}, Data: path},
		{Number: unix.SYS_FLOCK, Args: [6]uintptr{3, unix.LOCK_EX | unix.LOCK_NB}},
		{Number: unix.SYS_PPOLL, Args: [6]uintptr{calls.Pointer, 1, calls.Pointer + 8}, Data: wait},
	}
}

// useUntil uses our own file until ctx ends, and reports whether it ever was locked.
func useUntil(ctx context.Context, file *os.File) (locked bool) {
	for ; ctx.Err() == nil; time.Sleep(hostLooks) {
		if f, err := os.Open(systemFile); err == nil {
			f.Close()
		}
		// Shared: others may do this at the same time.
		fd := int(file.Fd())
		switch err := unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB); {
		case err == nil:
			unix.Flock(fd, unix.LOCK_UN) //nolint:errcheck // it was locked
		case errors.Is(err, unix.EWOULDBLOCK):
			locked = true
		}
	}
	return locked
}
