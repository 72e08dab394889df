package gitops

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
)

// Git tells some of its failures apart in words alone. Which they are is said here and nowhere else; in C's English, which
// every git of ours speaks.

// noRoom is what git, speaking C's English, says of these errors; it has no other way to tell.
var noRoom = map[syscall.Errno][]string{
	syscall.ENOSPC: {"No space left on device", "write error. Out of diskspace", "disk full?"}, // the others of a write that was short
	syscall.EDQUOT: {"Disk quota exceeded"},
}

// unwritable is what git says of these errors.
var unwritable = map[syscall.Errno][]string{
	syscall.EROFS:  {"Read-only file system"},
	syscall.EACCES: {"Permission denied"},
	syscall.EIO:    {"Input/output error"},
}

// Is reports whether git failed because of one of those, or was interrupted before we knew of it.
func (e *Error) Is(target error) bool {
	if target == context.Canceled {
		return e.interrupted
	}
	errno, ok := target.(syscall.Errno)
	return ok && slices.ContainsFunc(append(noRoom[errno], unwritable[errno]...), func(text string) bool { return strings.Contains(e.Stderr, text) })
}

// NoRoom reports whether an error comes of a full file system or a used-up quota.
func NoRoom(err error) bool {
	for errno := range noRoom {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// outOfMemory reports whether a command was refused memory: git says so, or is ended by a signal in a library that does not.
func outOfMemory(e *Error) bool {
	for _, text := range []string{"ut of memory", "annot allocate memory", "unable to create thread", "malloc failed"} {
		if strings.Contains(e.Stderr, text) {
			return true
		}
	}
	return false
}

// lockInTheWay is the lock that git could not take because it is there, empty if that is not why it failed.
func lockInTheWay(e *Error) string {
	_, rest, _ := strings.Cut(e.Stderr, "Unable to create '")
	file, _, there := strings.Cut(rest, ".lock': File exists")
	if !there {
		return ""
	}
	return file + ".lock"
}

// tooLarge reports whether index-pack was given more than it may take.
func tooLarge(e *Error) bool { return strings.Contains(e.Stderr, "exceeds maximum allowed size") }
