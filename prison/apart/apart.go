// Package apart starts processes that the terminal's signals do not reach: each has a session of its own.
package apart

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// Start is [os.StartProcess] for a process in a session of its own (setsid(2)). A nil file is the null device.
//
// A new process leaves the group of its caller only once it runs. A ^C of the terminal that comes before ends it. The caller gets the
// ^C as well and decides what it means, so another process is started in its place.
func Start(name string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	own := *attr
	if slices.Contains(attr.Files, nil) {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		defer null.Close()
		own.Files = slices.Clone(attr.Files)
		for i, f := range own.Files {
			if f == nil {
				own.Files[i] = null
			}
		}
	}
	own.Sys = &syscall.SysProcAttr{}
	if attr.Sys != nil {
		*own.Sys = *attr.Sys
	}
	own.Sys.Setsid = true
	for {
		p, err := os.StartProcess(name, argv, &own)
		if err != nil || executed(p.Pid) {
			return p, err
		}
		if _, err := p.Wait(); err != nil {
			return nil, fmt.Errorf("wait for process %d: %w", p.Pid, err)
		}
	}
}

const (
	flagsField   = 9    // of /proc/PID/stat, see proc(5)
	forkedNoExec = 0x40 // PF_FORKNOEXEC of the kernel's include/linux/sched.h
)

// executed reports whether a process that [os.StartProcess] returned runs its program. A signal may have ended it before, which
// os.StartProcess does not notice.
func executed(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true // this cannot be known, and is as good as always so
	}
	// The second field is the name, in parentheses.
	_, rest, _ := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte{' '})
	fields := bytes.Fields(rest)
	if len(fields) <= flagsField-3 {
		return true
	}
	flags, err := strconv.ParseUint(string(fields[flagsField-3]), 10, 64)
	return err != nil || flags&forkedNoExec == 0
}
