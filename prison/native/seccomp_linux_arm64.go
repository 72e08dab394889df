package native

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// allowedHere is for calls that other machines do not have.
var allowedHere []uint32

// legacy has nothing to add: this machine has no older forms of calls.
func (p *program) legacy() {}
