package internet

import "syscall"

// endingWithThis lets a child get SIGKILL when the thread ends that started it, see PR_SET_PDEATHSIG in prctl(2).
func endingWithThis() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
