// Package usernet gives a prison a network without privileges: an interface inside, and a process on the host that has the other end of
// the interface (package egress). The process reads the agent's packets, so it has a uid that no other process has, and no rights that an
// attacker could use. Begin reading at [New] and [Network.Await].
package usernet

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

const (
	// readyPatience bounds the time until the process carries packets, also on a busy machine.
	readyPatience = 30 * time.Second
	// pause is the delay before a successor starts, if the previous process ended within that time.
	pause = 500 * time.Millisecond
)

// Check returns an error if a spec requests a network that this machine or user cannot provide. If the device cannot be opened, tryPair
// reports whether [MakePair] works.
func Check(s prison.Spec, tryPair func() error) error {
	if s.Network == prison.NetworkNone {
		return nil
	}
	if err := CheckIDs(s); err != nil {
		return err
	}
	deviceErr := tryDevice()
	if deviceErr == nil {
		return nil
	}
	pairErr := tryPair()
	if pairErr == nil {
		return nil
	}
	reason := fmt.Sprintf("a network needs %s (%v) or a %s pair (%v)", Device, deviceErr, pairKind, pairErr)
	return walls.Unavailable(reason, mendDevice(deviceErr)...)
}

func tryDevice() error {
	fd, err := OpenDevice()
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// mendDevice returns commands that make the device available.
func mendDevice(err error) []string {
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return []string{"sudo modprobe tun"}
	case errors.Is(err, os.ErrPermission):
		return []string{"sudo chmod 0666 " + Device}
	}
	return nil
}

// Weakness returns the weakness of a prison whose interface is one of a pair, because the device cannot be opened.
func Weakness(deviceErr error) prison.Weakness {
	text := fmt.Sprintf("the network has a %s pair in place of a TUN device (%v): the same rules and records, sometimes less throughput", pairKind, deviceErr)
	return prison.Weakness{Kind: prison.NoTUN, Text: text}
}

// CheckIDs returns an error if this user has no second id. The process with the packets needs one.
func CheckIDs(s prison.Spec) error {
	_, _, err := walls.SecondPhantom(s.UID, s.GID)
	return err
}

// Finding reports whether this machine can provide a network, see [Check].
func Finding(tryPair func() error) prison.Finding {
	const name = "network"
	if err := Check(prison.Spec{Network: prison.NetworkAllowlist}, tryPair); err != nil {
		return walls.ErrorFinding(name, err)
	}
	f := prison.Finding{Name: name, Value: "allowlist and open, by a process without privileges"}
	if err := tryDevice(); err != nil {
		f.Lack, f.Mend = Weakness(err).Text, mendDevice(err)
	}
	return f
}

// Network is the network of a prison. The process that has started the prison has it, and keeps a duplicate of the interface's other end.
// While no process carries packets, no packet leaves, and the interface inside stays.
type Network struct {
	spec  prison.Spec
	note  func(pid int) error // called with the pid of each process; may be nil
	names *os.File            // known addresses of names, which a successor reads
	tap   *os.File            // the interface's other end
	held  *holder

	first     func() carrier // starts the first process; later calls return the same process
	connected func() error   // waits until the first process carries packets; nil before Connect

	mu      sync.Mutex
	current carrier // without a process before Await
	ended   bool
	done    chan struct{} // closed when the last process has ended
}

// carrier is a process that carries the packets of a prison. If it could not be started, err is set.
type carrier struct {
	process *os.Process
	link    wire.Conn
	err     error
}

// Start returns the network of a prison, and starts its process. The process gets ready while the prison starts.
func Start(s prison.Spec, note func(pid int) error) (*Network, error) {
	n, err := New(s, note)
	if n != nil {
		go n.first()
	}
	return n, err
}

// New returns the network of a prison that does not run yet, or nil for a prison without a network. [Network.Await] starts its
// process. If note is not nil, it is called with the id of each process that carries packets. The rules, state and ledger are in
// the prison's folder.
func New(s prison.Spec, note func(pid int) error) (*Network, error) {
	if s.Network == prison.NetworkNone {
		return nil, nil
	}
	if len(s.Secrets) > 0 {
		walls.NoCores()
	}
	fd, err := unix.MemfdCreate("", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory file: %w", err)
	}
	n := &Network{
		spec: s, note: note, names: os.NewFile(uintptr(fd), "names"), held: newHolder(s.Dir, s.ID, s.Secrets),
		done: make(chan struct{}),
	}
	n.first = sync.OnceValue(n.start)
	return n, nil
}

// start starts a process, unless the network has ended.
func (n *Network) start() carrier {
	if n.hasEnded() {
		return carrier{err: errors.New("the network has ended")}
	}
	c, err := newConfine(n.spec)
	if err != nil {
		return carrier{err: err}
	}
	return c.start(n.names)
}

// connect sends the interface's other end to a process, and returns when the process carries packets.
func (n *Network) connect(c carrier) error {
	if c.err != nil {
		return c.err
	}
	err := c.link.Send(wire.Announcement{Tap: true}, n.tap)
	if err == nil {
		err = c.link.Send(n.held.first())
	}
	if err == nil {
		c.link.SetReadDeadline(time.Now().Add(readyPatience))
		_, err = wire.AwaitReady(c.link, wire.Handed{})
		c.link.SetReadDeadline(time.Time{})
	}
	if err == nil && n.note != nil {
		err = n.note(c.process.Pid)
	}
	if err != nil {
		c.end()
	}
	return err
}

// end ends a process and waits until it has ended.
func (c carrier) end() {
	if c.err != nil {
		return
	}
	c.link.Close() // the process ends when its link ends
	late := time.AfterFunc(time.Second, func() { c.process.Kill() })
	c.process.Wait()
	late.Stop()
}

// Connect takes the interface's other end. Packets wait there until [Network.Await] lets a process carry them.
func (n *Network) Connect(tap *os.File) error {
	if n == nil || n.connected != nil {
		tap.Close()
		return errors.New("an interface arrived that was not expected")
	}
	n.tap, n.connected = tap, sync.OnceValue(n.carry)
	return nil
}

// Recover must be called if an earlier holder was killed. It reads the values of its credentials again, and records the event.
func (n *Network) Recover() { n.held.recover() }

// Supply hands more values of credentials to the network.
func (n *Network) Supply(secrets []secret.Secret) {
	walls.NoCores()
	n.held.supply(secrets)
}

// Await returns when the packets of a connected interface are carried. A prison without a network has a nil Network.
func (n *Network) Await() error {
	if n == nil || n.connected == nil {
		return nil
	}
	if err := n.connected(); err != nil {
		return fmt.Errorf("carry packets: %w", err)
	}
	return nil
}

// carry waits until the first process carries packets. From then on, a successor replaces each process that ends. Connections are lost
// then, but the network stays.
func (n *Network) carry() error {
	c := n.first()
	if err := n.connect(c); err != nil {
		return err
	}
	n.mu.Lock()
	n.current = c
	n.mu.Unlock()
	go n.held.serve(c)
	go n.held.watch(n.done)
	go n.replace()
	return nil
}

// replace starts a successor for each process that ends, until the network ends.
func (n *Network) replace() {
	defer close(n.done)
	for begun := time.Now(); ; begun = time.Now() {
		status, _ := n.current.process.Wait()
		n.current.link.Close()
		if !n.hasEnded() {
			n.held.alarm("the process of the network has ended: " + status.String())
		}
		for first := true; ; first = false {
			if n.hasEnded() {
				return
			}
			if !first || time.Since(begun) < pause {
				time.Sleep(pause)
			}
			c := n.start()
			if n.connect(c) != nil {
				continue
			}
			if n.setCurrent(c) {
				go n.held.serve(c)
				break
			}
			c.end()
			return
		}
	}
}

// setCurrent makes a process the current one, unless the network has ended.
func (n *Network) setCurrent(c carrier) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ended {
		n.current = c
	}
	return !n.ended
}

func (n *Network) hasEnded() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ended
}

// End ends the network, also before or without Await, and waits until its processes have ended. Without a network, n is nil.
func (n *Network) End() {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.ended = true
	current := n.current
	n.mu.Unlock()
	if current.process != nil {
		n.held.finish()
		current.link.Close()
		late := time.AfterFunc(time.Second, func() { current.process.Kill() })
		defer late.Stop()
		<-n.done
	} else {
		n.first().end() // the first process may have been started
	}
	n.held.end()
	wire.CloseAll([]*os.File{n.names, n.tap})
}
