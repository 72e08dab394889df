package selftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/calls"

	"golang.org/x/sys/unix"
)

// systemFile exists on most systems and is rarely used, so an agent at work hardly affects the probe.
const systemFile = "/usr/bin/csplit"

const (
	// hostLooks is the interval at which the host uses its file. watched is how long the file inside is watched.
	hostLooks = 5 * time.Millisecond
	watched   = 300 * time.Millisecond
)

// trySystemFiles watches and locks a system file inside while the host uses its own file. If both are the same file,
// a process inside sees when the host starts a program, and a lock inside makes the host wait.
//
// Another process inside, such as an agent that reads all programs, can use the file inside at the same moment. The host uses its file
// in every attempt, so one attempt without an effect shows that the files are different. If every attempt has an effect, a last one
// without the host's use shows whether another process inside was the cause.
func trySystemFiles(ctx context.Context, s Subject) (seen, broken string, err error) {
	file, err := os.Open(systemFile)
	if err != nil {
		return "there is none outside", "", nil
	}
	defer file.Close()
	for range tries {
		if seen, broken, err = watchSystemFile(ctx, s, file); err != nil || broken == "" {
			return seen, broken, err
		}
	}
	_, others, err := watchSystemFile(ctx, s, nil)
	if err == nil && others != "" {
		err = &untriedError{reason: "another process inside uses " + systemFile}
	}
	return "", broken, err
}

// watchSystemFile makes the calls once, while the host uses its file. If the file is nil, the host does not use it.
func watchSystemFile(ctx context.Context, s Subject, file *os.File) (seen, broken string, err error) {
	using, cancel := context.WithCancel(ctx)
	locked := make(chan bool)
	go func() { locked <- file != nil && useUntil(using, file) }()
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
		can = append(can, "make a process outside wait for its lock")
	}
	if len(can) > 0 {
		return "", "a process inside can " + strings.Join(can, " and "), nil
	}
	return "their use outside cannot be seen, and a lock inside has no effect outside", "", nil
}

// watchAndLock returns the calls. New descriptors are numbered from 3.
func watchAndLock() []calls.Call {
	path := []byte(systemFile + "\x00")
	const atCWD = ^uintptr(99) // AT_FDCWD
	return []calls.Call{
		{Number: unix.SYS_CLOSE_RANGE, Args: [6]uintptr{3, 1000}},
		{Number: unix.SYS_OPENAT, Args: [6]uintptr{atCWD, calls.Pointer, unix.O_RDONLY}, Data: path},
		{Number: unix.SYS_INOTIFY_INIT1},
		{Number: unix.SYS_INOTIFY_ADD_WATCH, Args: [6]uintptr{4, calls.Pointer, unix.IN_OPEN}, Data: path},
		{Number: unix.SYS_FLOCK, Args: [6]uintptr{3, unix.LOCK_EX | unix.LOCK_NB}},
		waitFor(4, unix.POLLIN, watched),
	}
}

// useUntil opens and locks the host's file until ctx ends. It reports whether the file was ever locked by another process.
func useUntil(ctx context.Context, file *os.File) (locked bool) {
	for ; ctx.Err() == nil; time.Sleep(hostLooks) {
		if f, err := os.Open(systemFile); err == nil {
			f.Close()
		}
		// The lock is shared, because other self-tests may lock the file at the same time.
		fd := int(file.Fd())
		switch err := unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB); {
		case err == nil:
			unix.Flock(fd, unix.LOCK_UN) //nolint:errcheck // this process holds the lock
		case errors.Is(err, unix.EWOULDBLOCK):
			locked = true
		}
	}
	return locked
}
