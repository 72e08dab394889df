package wire

import (
	"os"
	"syscall"
)

// Detach starts this program in a role that survives the caller: in a session of its own and in the root folder.
func Detach(role string, configuration any, env []string) (p *os.Process, link Conn, err error) {
	link, theirs, err := Pair()
	if err != nil {
		return nil, Conn{}, err
	}
	defer theirs.Close()
	defer func() {
		if err != nil {
			link.Close()
		}
	}()
	config, err := NewConfig(role, configuration, 1)
	if err != nil {
		return nil, Conn{}, err
	}
	defer config.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, Conn{}, err
	}
	defer null.Close()
	p, err = os.StartProcess("/proc/self/exe", []string{role}, &os.ProcAttr{
		Dir: "/", Env: env, Files: []*os.File{null, null, null, config, theirs}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, Conn{}, err
	}
	go p.Wait() // if it ends before this process, it must not stay a zombie
	return p, link, nil
}
