package wire

import (
	"os"

	"github.com/git-airlock/git-airlock/prison/apart"
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
	p, err = apart.Start("/proc/self/exe", []string{role}, &os.ProcAttr{Dir: "/", Env: env, Files: []*os.File{nil, nil, nil, config, theirs}})
	if err != nil {
		return nil, Conn{}, err
	}
	go p.Wait() // a child that ends before this process must not stay a zombie
	return p, link, nil
}
