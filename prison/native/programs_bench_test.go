//go:build linux

package native_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/walls"

	"golang.org/x/sys/unix"
)

// hundred is a script that starts a hundred programs, and prints the processor time of the shell and of the programs.
const hundred = `i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done; times`

// listenedEnv makes the test binary run hundred outside of a prison. With the value bare, the listener reads nothing. With reading, it
// makes the system calls of the recorder, and keeps nothing.
const listenedEnv = "LISTENED"

func init() { rolesHere[listenedEnv] = beListened }

// series are the ways in which the programs are started, in turns: in a prison without and with a record, and outside without a listener
// and with the two of listenedEnv. The last one shows how much a record must cost at least.
var series = []string{"plain", "recorded", "outside", "bare", "reading"}

// BenchmarkThousandPrograms measures a shell that starts programs, in each of the series. All results are for a thousand programs: the
// median of the turns, the fastest tenth (fast), which other work disturbs least, and the processor time (cpu) of the shell, the programs
// and the listener, and that of the recorder alone.
func BenchmarkThousandPrograms(b *testing.B) {
	const turns = 10
	took, used := map[string][]float64{}, map[string]float64{}
	run, recorder := map[string]func() string{}, 0
	for _, kind := range series[:2] {
		backend, s := benchSpec(b)
		s.Record = kind == "recorded"
		p := startRecorded(b, backend, s)
		recorder = stateOf(b, s).Recorder.PID
		run[kind] = func() string {
			var out bytes.Buffer
			if status, err := p.Exec(b.Context(), prison.Process{Argv: []string{"sh", "-c", hundred}, Stdout: &out}); err != nil || status != 0 {
				b.Fatal(status, err)
			}
			return out.String()
		}
	}
	for _, kind := range series[2:] {
		run[kind] = func() string { return listened(b, kind) }
	}
	before := processorTime(recorder)
	n := 0.0
	for b.Loop() {
		n++
		for range turns {
			for _, kind := range series {
				begun := time.Now()
				used[kind] += shellTime(b, run[kind]())
				took[kind] = append(took[kind], time.Since(begun).Seconds()*1000*turns)
			}
		}
	}
	answered := processorTime(recorder) - before
	used["recorded"] += answered
	b.ReportMetric(answered/n, "ms-cpu-recorder")
	for _, name := range series {
		slices.Sort(took[name])
		b.ReportMetric(took[name][len(took[name])/2], "ms-"+name)
		b.ReportMetric(took[name][len(took[name])/10], "ms-fast-"+name)
		b.ReportMetric(used[name]/n, "ms-cpu-"+name)
	}
}

// listened runs hundred outside of a prison.
func listened(b *testing.B, kind string) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), listenedEnv+"="+kind)
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	return string(out)
}

// beListened runs hundred, and then prints the processor time of the listener.
func beListened(kind string) int {
	runtime.LockOSThread()
	stop := func() time.Duration { return 0 }
	if kind != "outside" {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return 1
		}
		f, err := walls.ListenToPrograms()
		if err != nil {
			return 1
		}
		stop = answerAll(f.Fd(), kind == "reading")
	}
	cmd := exec.Command("/bin/sh", "-c", hundred)
	cmd.Stdout = os.Stdout
	if cmd.Run() != nil {
		return 1
	}
	fmt.Println(stop())
	return 0
}

// answerAll lets every call continue that the listener reports. If reads is true, it first makes the reads of the recorder. The result
// returns the processor time that this has taken so far.
func answerAll(fd uintptr, reads bool) func() time.Duration {
	const setFlags, wakeInSync = 0x40082104, 1
	unix.Syscall(unix.SYS_IOCTL, fd, setFlags, wakeInSync) // an older kernel is slower
	thread := make(chan int)
	go func() {
		runtime.LockOSThread()
		thread <- unix.Gettid()
		for {
			var call [80]byte // struct seccomp_notif
			if _, _, e := unix.RawSyscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&call[0]))); e != 0 {
				continue // the process was killed
			}
			if reads {
				readLikeRecorder(&call)
			}
			answer := [3]uint64{*(*uint64)(unsafe.Pointer(&call[0])), 0, unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE << 32}
			unix.RawSyscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer[0]))) // the process may be gone
		}
	}()
	id := <-thread
	return func() time.Duration {
		return time.Duration(threadTime(fmt.Sprintf("/proc/self/task/%d/schedstat", id)) * 1e6)
	}
}

// readLikeRecorder makes the system calls with which the recorder reads the program that a process executes or has executed.
func readLikeRecorder(call *[80]byte) {
	thread, number := *(*uint32)(unsafe.Pointer(&call[8])), *(*int32)(unsafe.Pointer(&call[16]))
	file := func(name string) uintptr {
		path := fmt.Appendf(nil, "/proc/%d/%s\x00", thread, name)
		return uintptr(unsafe.Pointer(&path[0]))
	}
	var b [8192]byte
	memory := func(at ...uint64) {
		local := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
		var from []unix.RemoteIovec
		for _, a := range at {
			from = append(from, unix.RemoteIovec{Base: uintptr(a &^ 4095), Len: 4096})
		}
		unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(thread), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&from[0])), uintptr(len(from)), 0)
	}
	link := func(name string) {
		unix.RawSyscall6(unix.SYS_READLINKAT, 0, file(name), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0)
	}
	switch number {
	case unix.SYS_EXECVE:
		path, list := *(*uint64)(unsafe.Pointer(&call[32])), *(*uint64)(unsafe.Pointer(&call[40]))
		memory(path, list)
		link("cwd")
		process, _, _ := unix.RawSyscall(unix.SYS_PIDFD_OPEN, uintptr(thread), 0, 0)
		unix.RawSyscall(unix.SYS_CLOSE, process, 0, 0)
	case unix.SYS_EXIT_GROUP:
		fd, _, e := unix.RawSyscall6(unix.SYS_OPENAT, 0, file("stat"), unix.O_RDONLY, 0, 0, 0)
		if e != 0 {
			return
		}
		n, _, _ := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
		fields := bytes.Fields(b[:n])
		if arguments, err := strconv.ParseUint(string(fields[min(47, len(fields)-1)]), 10, 64); err == nil {
			memory(arguments)
		}
		link("exe")
	}
}

// processorTime returns the time that the threads of a process have run, in milliseconds.
func processorTime(pid int) (ms float64) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, f := range files {
		ms += threadTime(f)
	}
	return ms
}

// threadTime reads the time that a thread has run, in milliseconds, from its file schedstat.
func threadTime(path string) (ms float64) {
	var ns float64
	if text, err := os.ReadFile(path); err == nil {
		fmt.Sscan(string(text), &ns)
	}
	return ns / 1e6
}

// shellTime adds up the times that the command times of a shell has printed.
func shellTime(t testing.TB, text string) (ms float64) {
	t.Helper()
	for _, word := range strings.Fields(text) {
		d, err := time.ParseDuration(word)
		if err != nil {
			t.Fatal(err)
		}
		ms += d.Seconds() * 1000
	}
	return ms
}
