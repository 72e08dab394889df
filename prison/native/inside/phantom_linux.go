package inside

import (
	"os"
	"runtime"
	"syscall"

	"github.com/git-airlock/git-airlock/prison/native/walls"

	"golang.org/x/sys/unix"
)

// Nobody is the uid that init has inside if the agent has another one. On the host, init then has the uid of [walls.InitUID].
const Nobody = 65534

// phantom is the agent's uid if it is not init's. It is 0 if init has the agent's uid.
//
// With a uid of its own, init is safe from the agent: the kernel compares uids in prlimit(2), setpriority(2),
// ioprio_set(2), sched(7), ptrace(2) and kill(2). Init has the agent's gid, and two capabilities in the prison's user
// namespace, see [walls.InitPrivileges].
type phantom int

// do calls f in a thread that has the agent's rights to files (setfsuid(2)). New pipes and terminals belong to the
// agent. This is never the first thread: the change would clear its setting of PR_SET_PDEATHSIG(2const).
func (p phantom) do(f func()) {
	if p == 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		unix.RawSyscall(unix.SYS_SETFSUID, uintptr(p), 0, 0)                  //nolint:errcheck // never fails
		defer unix.RawSyscall(unix.SYS_SETFSUID, uintptr(os.Geteuid()), 0, 0) //nolint:errcheck // never fails
		f()
	}()
	<-done
}

// credential returns the ids of the agent's processes. They have no other groups than init.
func (p phantom) credential() *syscall.Credential {
	if p == 0 {
		return nil
	}
	return &syscall.Credential{Uid: uint32(p), Gid: uint32(os.Getegid()), NoSetGroups: true}
}

// guarded calls f, which starts a program with the agent's effective uid and init's real uid. The program has the agent's rights to
// files. kill(2) and prlimit(2) compare the real uid, and the saved one, which execve(2) changes to the effective one. So the program must
// make its saved uid the real one, see files.Reexec. The calling thread has CAP_SETUID.
func (p phantom) guarded(f func()) error {
	own := uintptr(os.Getuid())
	const same = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(p), same); errno != 0 {
		return errno
	}
	defer unix.RawSyscall(unix.SYS_SETRESUID, same, own, same) //nolint:errcheck // it is the real uid
	f()
	return nil
}

// keepPrivileges keeps the processes that this thread starts from inheriting a capability.
func (p phantom) keepPrivileges() error {
	if p == 0 {
		return nil
	}
	return walls.KeepPrivileges()
}
