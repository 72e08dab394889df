package internet

import "syscall"

// endingWithThis makes a child get SIGKILL when the thread that started it ends, see PR_SET_PDEATHSIG in prctl(2).
func endingWithThis() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
