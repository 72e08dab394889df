package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() { commands["restless"] = func() { beRestless(os.Args[1]) } }

// beRestless runs in a prison. It has a timer that sends SIGCONT to this process, which therefore goes on after SIGSTOP. It writes to
// the file all the time, and stops each process with the name of one that reads or writes the workspace for the host.
func beRestless(file string) {
	signal.Notify(make(chan os.Signal, 1), unix.SIGCONT)
	event := struct { // sigevent(3type)
		value          uintptr
		signal, notify int32
		_              [48]byte
	}{signal: int32(unix.SIGCONT)}
	var timer int32
	const every = 20 * time.Millisecond
	spec := [4]int64{0, int64(every), 0, int64(every)} // struct itimerspec of a 64-bit processor
	if _, _, e := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&timer))); e != 0 {
		panic(e)
	}
	if _, _, e := unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(timer), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0); e != 0 {
		panic(e)
	}
	for n := 0; ; n++ {
		if err := os.WriteFile(file, fmt.Append(nil, n), 0o600); err != nil {
			panic(err)
		}
		names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range names {
			var pid int
			if argv, _ := os.ReadFile(name); !strings.Contains(string(argv), "serve-workspace") {
				continue
			}
			fmt.Sscanf(name, "/proc/%d/", &pid)
			unix.Kill(pid, unix.SIGSTOP) // which fails, except just after its start
		}
		time.Sleep(time.Millisecond)
	}
}
