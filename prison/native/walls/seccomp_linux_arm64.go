package walls

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// allowedHere are allowed calls that other architectures do not have.
var allowedHere []uint32

// legacy adds nothing, since this architecture has no older forms of calls.
func (p *program) legacy() {}

// networkCallsHere is empty: only older architectures have further calls.
var networkCallsHere []uint32
