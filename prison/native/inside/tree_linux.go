package inside

import (
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/inotify"
	"github.com/git-airlock/git-airlock/prison/native/wire"
)

// watchTree watches all folders of the workspace. For each byte that the caller sends, it replies with the changed folders.
func watchTree(c wire.Conn, agent phantom) {
	t, err := inotify.Watch(prison.Workspace, agent.do)
	if err != nil {
		c.Send(wire.Reply{Error: err.Error()})
		return
	}
	defer t.Close()
	if c.Send(wire.Reply{}) != nil {
		return
	}
	ask := make([]byte, 1)
	for {
		if n, err := c.Read(ask); err != nil || n == 0 {
			return
		}
		touched, err := t.Touched()
		if err != nil {
			c.Send(wire.Reply{Error: err.Error()})
			return
		}
		if c.Send(wire.Reply{Paths: wire.PackAll(touched)}) != nil {
			return
		}
	}
}
