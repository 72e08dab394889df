//go:build linux && (amd64 || arm64)

package walls

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// programCalls are the calls with which programs begin and end.
var programCalls = []uint32{unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_EXIT, unix.SYS_EXIT_GROUP}

// programFilter sends the given calls to a listener, and allows all others. It allows calls of other architectures, since the prison's
// first filter kills the process for them, and the kernel obeys the stricter filter.
func programFilter(calls []uint32) program {
	p := begin(retAllow)
	for _, number := range calls {
		p.answer(number, unix.SECCOMP_RET_USER_NOTIF)
	}
	p.ret(retAllow)
	return p
}

// ListenToPrograms makes the kernel send the calls with which this thread and its children begin and end programs to the listener that it
// returns, see package execs. A call waits until the listener is answered. A process that waits can be killed.
func ListenToPrograms() (*os.File, error) { return listenTo(programCalls) }

// ProgramFilter returns the filter of [ListenToPrograms] as the kernel reads it, for a program that cannot call that function, and
// the flags of seccomp(2). The filter is an array of struct sock_filter.
func ProgramFilter() (filter []byte, flags uint32) {
	for _, f := range programFilter(programCalls) {
		filter = binary.NativeEndian.AppendUint16(filter, f.Code)
		filter = binary.NativeEndian.AppendUint32(append(filter, f.Jt, f.Jf), f.K)
	}
	return filter, listenFlags
}

// listenFlags make a listener. Only a fatal signal interrupts a call that waits for an answer.
const listenFlags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

func listenTo(calls []uint32) (*os.File, error) {
	p := programFilter(calls)
	fprog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	fd, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, listenFlags, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(p)
	if e != 0 {
		return nil, e
	}
	return os.NewFile(fd, "listener"), nil
}

// CheckPrograms returns an error if programs cannot be recorded here. It installs a filter on a thread that then ends.
func CheckPrograms() error {
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && bytes.HasPrefix(scope, []byte("3")) {
		return errors.New("kernel.yama.ptrace_scope is 3")
	}
	if err := readOwnMemory(); err != nil {
		return fmt.Errorf("process_vm_readv: %w", err)
	}
	var err error
	OnLastThread(func() {
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return
		}
		var listener *os.File
		// exit is not among the calls: if a thread could not exit, this process would end.
		if listener, err = listenTo(programCalls[:1]); err == nil {
			listener.Close()
		}
	})
	switch {
	case errors.Is(err, unix.EINVAL):
		return errors.New("it needs Linux 5.19")
	case errors.Is(err, unix.EBUSY):
		return errors.New("another program listens to the system calls of this one")
	default:
		return err
	}
}

func readOwnMemory() error {
	from, to := [1]byte{1}, [1]byte{}
	local := []unix.Iovec{{Base: &to[0]}}
	local[0].SetLen(1)
	_, err := unix.ProcessVMReadv(os.Getpid(), local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&from[0])), Len: 1}}, 0)
	return err
}
