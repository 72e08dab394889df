package gitops

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Some of git's failures can be recognised only by their messages. All such messages are in this file. They are in
// English, since git runs in the C locale.

// ofMachine are git's messages for errors of the machine. Git reports them in no other way.
var ofMachine = map[syscall.Errno][]string{
	// the latter two are for a short write
	syscall.ENOSPC: {"No space left on device", "write error. Out of diskspace", "disk full?"},
	syscall.EDQUOT: {"Disk quota exceeded"},
	syscall.EROFS:  {"Read-only file system"},
	syscall.EACCES: {"Permission denied"},
	syscall.EIO:    {"Input/output error"},
}

// Is reports whether git failed because of one of those errors, or was interrupted before this process noticed the interrupt.
func (e *Error) Is(target error) bool {
	if target == context.Canceled {
		return e.signal == syscall.SIGINT
	}
	errno, ok := target.(syscall.Errno)
	return ok && slices.ContainsFunc(ofMachine[errno], func(text string) bool { return strings.Contains(e.Stderr, text) })
}

// NoRoom reports whether the cause of an error is a full file system or an exhausted quota.
func NoRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Uncreated reports whether git could not create a file for a reason that lies in the commit, such as a name that the file system does not allow.
func Uncreated(err error) bool {
	e, ok := errors.AsType[*Error](err)
	for errno := range ofMachine {
		ok = ok && !errors.Is(err, errno)
	}
	said := []string{"unable to create file ", "unable to create symlink ", "cannot create directory at ", "nvalid path '"}
	return ok && slices.ContainsFunc(said, func(text string) bool { return strings.Contains(e.Stderr, text) })
}

// OutOfMemory reports whether a command could not allocate memory: git reports that, or a signal ends git in a library that does not.
func OutOfMemory(e *Error) bool {
	said := []string{"ut of memory", "annot allocate memory", "unable to create thread", "malloc failed"}
	return slices.ContainsFunc(said, func(text string) bool { return strings.Contains(e.Stderr, text) })
}

// lockInTheWay returns the lock that git could not take because it exists already. It is empty if git failed for another reason.
func lockInTheWay(e *Error) string {
	_, rest, _ := strings.Cut(e.Stderr, "Unable to create '")
	file, _, there := strings.Cut(rest, ".lock': File exists")
	if !there {
		return ""
	}
	return file + ".lock"
}

// smudgeFailed is git's last line after a filter has failed that is required.
var smudgeFailed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^fatal: (.*: )(smudge filter (.*) failed)$`) })

// SmudgeFailure returns the file, with a colon, and the name of the filter, if an error of git names them, and the text of the error. With a filter,
// the text leaves out git's lines about the filter's command, in which the user's command is hard to find.
func SmudgeFailure(err error) (file, filter, text string) {
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Lines) == 0 {
		return "", "", err.Error()
	}
	rest, last := e.Lines[:len(e.Lines)-1], smudgeFailed().FindStringSubmatch(e.Lines[len(e.Lines)-1])
	if last == nil {
		return "", "", err.Error()
	}
	rest = slices.DeleteFunc(slices.Clone(rest), func(line string) bool { return line == "" || strings.HasPrefix(line, "error: external filter '") })
	return last[1], last[3], strings.Join(append([]string{last[2]}, rest...), "; ")
}

// TooLarge reports whether the input of index-pack was larger than allowed.
func TooLarge(e *Error) bool { return strings.Contains(e.Stderr, "exceeds maximum allowed size") }

// Unless returns err, or nil if err is the expected error.
func Unless(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
