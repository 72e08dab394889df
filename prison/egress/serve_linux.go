package egress

import (
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// A process that was started to carry a prison's packets runs serve here and exits, in every program that imports this package. It was
// confined before it executed this program, whose initialisation takes long: see the init function of package native.
func init() { wire.Begin(map[string]wire.Role{wire.Egress: serve}) }

// serve carries packets until the process that has started the prison ends, or closes the link.
func serve(config []byte, _ int) int {
	link, err := wire.FileConn(wire.InheritedFile(0))
	if err != nil {
		return 1
	}
	names := wire.InheritedFile(1)
	var a wire.Announcement
	files, err := link.Recv(&a)
	for err == nil && !a.Tap { // "go on", which is read here unless the process that confined this one has read it
		files, err = link.Recv(&a)
	}
	if err != nil {
		return 1
	}
	var first control.Order
	if _, err := link.Recv(&first); err != nil {
		return 1
	}
	var e *Engine
	if err = walls.LimitNetwork(); err == nil {
		e, err = newServed(config, files, names, first)
	}
	if err == nil {
		err = confine()
	}
	if err != nil {
		link.Send(wire.Announcement{Error: err.Error()}) //nolint:errcheck // a parent that does not read it sees the link end
		return 1
	}
	if link.Send(wire.Announcement{}) != nil {
		return 1
	}
	e.report(link)
	return 0
}

// newServed makes an engine for the interface that came over the link.
func newServed(config []byte, files []*os.File, names *os.File, first control.Order) (*Engine, error) {
	if len(files) != 1 {
		return nil, errors.New("the interface did not come")
	}
	var w wire.Wiring
	if err := json.Unmarshal(config, &w); err != nil {
		return nil, err
	}
	// A duplicate, which the garbage collector does not close with the file.
	tap, err := unix.FcntlInt(files[0].Fd(), unix.F_DUPFD_CLOEXEC, 0)
	wire.CloseAll(files)
	if err != nil {
		return nil, err
	}
	at := netip.AddrFrom4
	return NewEngine(Settings{
		Wire: Wire{
			FD: tap, MTU: w.MTU, Inside: at(w.Inside), Gateway: at(w.Gateway), Resolver: at(w.Resolver), Bits: w.Bits, MAC: w.MAC,
		},
		World: newInternet(), Names: names, Open: w.Open, First: first,
	})
}

// confine gives up the rights that only the start needs.
func confine() error {
	// Package net finds out once which address families exist. It binds sockets for that, which the filter does not allow.
	if _, err := net.ResolveTCPAddr("tcp", "127.0.0.1:1"); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	return walls.FilterNetwork()
}
