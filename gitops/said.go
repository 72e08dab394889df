package gitops

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/git-airlock/git-airlock/gitops/cause"
)

// Some of git's failures can be recognised only by their messages. All such messages are in this file. They are in
// English, since git runs in the C locale.

// An agent chooses names of files and refs, and git's messages contain these. So a text counts only where git puts no such name: an error of the
// machine at the end of a message, and any other message at its beginning. A name can have several lines, and then ends a line, but no message.

// ofMachine are git's messages for errors of the machine. Git reports them in no other way.
var ofMachine = map[syscall.Errno][]string{
	// the latter two are for a short write
	syscall.ENOSPC: {": No space left on device", " write error. Out of diskspace", "disk full?"},
	syscall.EDQUOT: {": Disk quota exceeded"},
	syscall.EROFS:  {": Read-only file system"},
	syscall.EACCES: {": Permission denied"},
	syscall.EIO:    {": Input/output error"},
}

// ends reports whether a message of git ends with one of the texts, as [cause.Ends] does.
func (e *Error) ends(texts ...string) bool { return cause.Ends(e.Lines, texts...) }

// begins reports whether a message of git begins with one of the texts. The one about a filter begins with a file.
func (e *Error) begins(texts ...string) bool {
	return slices.ContainsFunc(e.Lines, func(line string) bool {
		message := strings.TrimPrefix(strings.TrimPrefix(line, "fatal: "), "error: ")
		return !smudgeFailed().MatchString(line) && slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(message, text) })
	})
}

// Is reports whether git failed because of one of those errors, or was interrupted before this process noticed the interrupt.
func (e *Error) Is(target error) bool {
	if target == context.Canceled {
		return e.signal == syscall.SIGINT
	}
	errno, ok := target.(syscall.Errno)
	return ok && e.ends(ofMachine[errno]...)
}

// NoRoom reports whether the cause of an error is a full file system or an exhausted quota.
func NoRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Uncreated reports whether git could not create a file for a reason that lies in the commit, such as a name that the file system does not allow.
func Uncreated(err error) bool {
	e, ok := errors.AsType[*Error](err)
	for errno := range ofMachine {
		ok = ok && !errors.Is(err, errno)
	}
	return ok && e.begins("unable to create file ", "unable to create symlink ", "cannot create directory at ", "invalid path '", "Invalid path '")
}

// OutOfMemory reports whether a command could not allocate memory: git reports that, or a signal ends git in a library that does not.
func OutOfMemory(e *Error) bool {
	return e.ends(": Cannot allocate memory", ": out of memory") || e.begins("Out of memory", "inflateInit: out of memory", "deflateInit: out of memory", "unable to create thread", "cannot create async thread")
}

// lockInTheWay returns the lock that git could not take because it exists already, or nothing. Git names only a ref before it, which has no space.
func lockInTheWay(e *Error) string {
	_, rest, _ := strings.Cut(e.Said(), "Unable to create '")
	if file, _, there := strings.Cut(rest, ".lock': File exists"); there {
		return file + ".lock"
	}
	return ""
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
func TooLarge(e *Error) bool { return e.begins("pack exceeds maximum allowed size") }

// Unless returns err, or nil if err is the expected error.
func Unless(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
