// Package apart starts processes that do not get the signals of the caller's terminal, because each has its own session.
package apart

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/git-airlock/git-airlock/gitops/procstat"
)

// Start does what [os.StartProcess] does, for a process in its own session (setsid(2)). A nil file is the null device.
//
// A new process leaves the caller's process group only when its program runs. A ^C of the terminal before that ends the process. The
// caller gets the same ^C and decides what to do, so Start starts another process instead.
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
	flagsField   = 9    // number of the field in /proc/PID/stat, see proc(5)
	forkedNoExec = 0x40 // PF_FORKNOEXEC of the kernel's include/linux/sched.h
)

// executed reports whether a process that [os.StartProcess] returned runs its program. A signal may have ended it before, which
// os.StartProcess does not notice.
func executed(pid int) bool {
	fields, err := procstat.Fields(pid)
	if err != nil || len(fields) <= flagsField-3 {
		return true // without /proc, assume it: it is true nearly always
	}
	flags, err := strconv.ParseUint(fields[flagsField-3], 10, 64)
	return err != nil || flags&forkedNoExec == 0
}
