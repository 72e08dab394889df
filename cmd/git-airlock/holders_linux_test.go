package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() { scriptCommands["holders"] = cmdHolders }

// holders NUMBER FILE waits until as many processes of the program, and of all in prisons, have the content of a file in their memory. It
// checks that none of them dumps more than a byte of core. Only root can read all that memory: for another user it does nothing.
func cmdHolders(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 2, "holders NUMBER FILE")
	if os.Geteuid() != 0 {
		return
	}
	text := []byte(strings.TrimSpace(ts.ReadFile(args[1])))
	for begun := time.Now(); ; rest(begun) {
		var with []int
		for _, pid := range possibleHolders(ts) {
			if bytes.Contains(memoryOf(pid), text) {
				with = append(with, pid)
			}
		}
		if strconv.Itoa(len(with)) == args[0] && !slices.ContainsFunc(with, func(pid int) bool { return !dumpsNothing(ts, pid) }) {
			return
		}
		if time.Since(begun) > patience {
			ts.Fatalf("processes with the text: %v", with)
		}
	}
}

// dumpsNothing checks that core dumps of a process have at most a byte. It reports false for a process that has ended.
func dumpsNothing(ts *testscript.TestScript, pid int) bool {
	const before = "Max core file size"
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return false
	}
	ts.Check(err)
	for line := range strings.Lines(string(limits)) {
		rest, ok := strings.CutPrefix(line, before)
		if limit := strings.Fields(rest); ok && limit[0] != "0" && limit[0] != "1" {
			ts.Fatalf("process %d dumps core: %s", pid, line)
		}
	}
	return true
}

// possibleHolders returns the processes that run the program, but for this one, and those in other process namespaces.
func possibleHolders(ts *testscript.TestScript) (pids []int) {
	var program, of syscall.Stat_t
	at, err := exec.LookPath("git-airlock")
	ts.Check(errors.Join(err, syscall.Stat(at, &program)))
	here, err := os.Readlink("/proc/self/ns/pid")
	ts.Check(err)
	folders, err := filepath.Glob("/proc/[0-9]*")
	ts.Check(err)
	for _, folder := range folders {
		pid, _ := strconv.Atoi(filepath.Base(folder))
		runs := syscall.Stat(folder+"/exe", &of) == nil && of.Dev == program.Dev && of.Ino == program.Ino && pid != os.Getpid()
		if space, err := os.Readlink(folder + "/ns/pid"); runs || err == nil && space != here {
			pids = append(pids, pid)
		}
	}
	return pids
}
