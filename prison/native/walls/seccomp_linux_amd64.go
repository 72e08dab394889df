package walls

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// allowedHere are allowed calls that newer architectures do not have.
var allowedHere = []uint32{
	unix.SYS_ACCESS, unix.SYS_ALARM, unix.SYS_ARCH_PRCTL, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_CREAT,
	unix.SYS_DUP2, unix.SYS_EPOLL_CREATE, unix.SYS_EPOLL_CTL_OLD, unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_WAIT_OLD,
	unix.SYS_EVENTFD, unix.SYS_FORK, unix.SYS_FUTIMESAT, unix.SYS_GETDENTS, unix.SYS_GETPGRP,
	unix.SYS_GET_THREAD_AREA, unix.SYS_INOTIFY_INIT, unix.SYS_LCHOWN, unix.SYS_LINK, unix.SYS_LSTAT, unix.SYS_MKDIR,
	unix.SYS_MKNOD, unix.SYS_OPEN, unix.SYS_PAUSE, unix.SYS_PIPE, unix.SYS_POLL, unix.SYS_READLINK, unix.SYS_RENAME,
	unix.SYS_RMDIR, unix.SYS_SELECT, unix.SYS_SET_THREAD_AREA, unix.SYS_SIGNALFD, unix.SYS_STAT, unix.SYS_SYMLINK,
	unix.SYS_TIME, unix.SYS_UNLINK, unix.SYS_URETPROBE, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_VFORK,
}

// legacy adds the rules for the older forms of calls.
func (p *program) legacy() {
	p.refuseBits(unix.SYS_CHMOD, 1, setIDBits)
	p.refuseBits(unix.SYS_MKNOD, 1, setIDBits)
	p.refuseBits(unix.SYS_CREAT, 1, setIDBits)
	p.refuseSetIDCreate(unix.SYS_OPEN, 1, 2)
}

// networkCallsHere are allowed calls of the network process that newer architectures do not have.
var networkCallsHere = []uint32{unix.SYS_ACCESS, unix.SYS_ARCH_PRCTL, unix.SYS_EPOLL_WAIT, unix.SYS_POLL, unix.SYS_READLINK, unix.SYS_STAT}
