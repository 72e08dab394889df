package gitops

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// cutByGit fills the middle of a message until it has as many bytes as the longest one of git.
func cutByGit(begin, end string) string {
	return begin + strings.Repeat("d", 4095-len(begin)-len(end)) + end
}

// TestErrorsOfMachine uses messages of git in which an agent has chosen the name of the file.
func TestErrorsOfMachine(t *testing.T) {
	for _, c := range []struct {
		line      string
		errno     syscall.Errno
		uncreated bool
		memory    bool
	}{
		{line: "error: unable to create file a/b: No space left on device", errno: syscall.ENOSPC},
		{line: "fatal: sha1 file '/r/.git/index.lock' write error. Out of diskspace", errno: syscall.ENOSPC},
		{line: "fatal: cannot create directory at 'a': Permission denied", errno: syscall.EACCES},
		{line: "error: unable to create file a/b: File name too long", uncreated: true},
		{line: "error: unable to create file No space left on device/b: File name too long", uncreated: true},
		{line: "error: unable to create file a: No space left on device; b/c: File name too long", uncreated: true},
		{line: "error: unable to create file Permission denied/Out of memory: File name too long", uncreated: true},
		{line: "error: unable to create symlink Read-only file system: No such file or directory", uncreated: true},
		{line: "error: invalid path 'Input/output error'", uncreated: true},
		{line: "error: unable to create file x: No space left on device\ny: File name too long", uncreated: true},
		{line: "error: unable to create file x: No space left on device\nerror: y/z: File name too long", uncreated: true},
		{line: "error: unable to create file x: No space left on device\nerror: y/z: Filename too long\nfatal: c", uncreated: true},
		{line: cutByGit("error: unable to create file x: No space left on device\nerror: y/", ""), uncreated: true},
		{line: cutByGit("error: unable to create file x\nerror: y/", ": No space left on device"), uncreated: true},
		{line: strings.Repeat("error: unable to create file a: No space left on device\n", 100) + "fatal: c", errno: syscall.ENOSPC},
		{line: "error: invalid path 'x: No space left on device\nfatal: y'", uncreated: true},
		{line: "error: file write error: No space left on device\nerror: a: failed to insert into database\nfatal: Unable to process path a", errno: syscall.ENOSPC},
		{line: "error: unable to create file a: File name too long\nerror: unable to create file b: No space left on device\nfatal: c", errno: syscall.ENOSPC},
		{line: "fatal: unable to create file a: smudge filter b failed"},
		{line: "fatal: No space left on device.bin: smudge filter b failed"},
		{line: "fatal: Out of memory: smudge filter b failed"},
		{line: "fatal: Out of memory, malloc failed (tried to allocate 8 bytes)", memory: true},
		{line: "fatal: deflateInit: out of memory (no message)", memory: true},
		{line: "error: cannot fork() for a: Cannot allocate memory", memory: true},
	} {
		err := &Error{Args: []string{"checkout-index"}, Lines: append([]string{""}, strings.Split(c.line, "\n")...)}
		for errno := range ofMachine {
			if got, want := errors.Is(fmt.Errorf("step: %w", err), errno), errno == c.errno; got != want {
				t.Errorf("%s: %v: %v, want %v", c.line, errno, got, want)
			}
		}
		if got := Uncreated(err); got != c.uncreated {
			t.Errorf("%s: Uncreated is %v", c.line, got)
		}
		if got := OutOfMemory(err); got != c.memory {
			t.Errorf("%s: OutOfMemory is %v", c.line, got)
		}
	}
}

// TestSmudgeFailure uses messages of git. An agent chooses the names of files, and with them what a filter prints.
func TestSmudgeFailure(t *testing.T) {
	for _, c := range []struct {
		lines              []string
		file, filter, text string
	}{
		{[]string{"fatal: one.bin: smudge filter lfs failed"}, "one.bin: ", "lfs", "smudge filter lfs failed"},
		{[]string{"fatal: a: smudge filter nb failed", "fatal: one.bin: smudge filter lfs failed"}, "one.bin: ", "lfs", "smudge filter lfs failed; fatal: a: smudge filter nb failed"},
		{[]string{"fatal: a: smudge filter nb failed: smudge filter lfs failed"}, "a: smudge filter nb failed: ", "lfs", "smudge filter lfs failed"},
		{[]string{"server is down", "error: external filter 'cd /top && git-lfs filter-process' failed", "fatal: a b: smudge filter a b failed"}, "a b: ", "a b",
			"smudge filter a b failed; server is down"},
		{[]string{"fatal: one.bin: smudge filter lfs failed", "fatal: other"}, "", "", "step: git checkout-index: fatal: one.bin: smudge filter lfs failed; fatal: other"},
		{nil, "", "", "step: git checkout-index: exit status 0"},
	} {
		failed := &Error{Args: []string{"checkout-index"}, Lines: c.lines}
		file, filter, text := SmudgeFailure(fmt.Errorf("step: %w", failed))
		if file != c.file || filter != c.filter || text != c.text {
			t.Errorf("%q: %q, %q, %q", c.lines, file, filter, text)
		}
	}
}
