package native

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// refusedHere are refused calls that newer machines do not have.
var refusedHere = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
	unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL,
}

// legacy adds the rules for the older forms of calls.
func (p *program) legacy() {
	p.refuseBits(unix.SYS_CHMOD, 1, setIDBits)
	p.refuseBits(unix.SYS_MKNOD, 1, setIDBits)
	p.refuseBits(unix.SYS_CREAT, 1, setIDBits)
	p.refuseSetIDCreate(unix.SYS_OPEN, 1, 2)
}
