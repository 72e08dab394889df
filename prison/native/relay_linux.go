package native

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

const (
	// helperPatience is how long a network program may take until it answers.
	helperPatience = 5 * time.Second
	// helperPause is how long its successor waits when it has ended.
	helperPause = time.Second
	// maxFrame is larger than every frame of the interface.
	maxFrame = 1 << 16
)

// relayConfig is all the relay knows.
type relayConfig struct {
	UID, GID int // whom it becomes
	Programs map[string]string
}

// relay stands between a prison's interface and the program that connects it with the world. It is a
// process of its own so that whoever looks at the agent's packets holds nothing else.
type relay struct {
	relayConfig
	tap *os.File
}

// startRelay hands an interface's other end to a new relay, and returns when it carries packets.
func startRelay(s prison.Spec, tap *os.File) (p *os.Process, link conn, err error) {
	defer tap.Close()
	c := child{
		role: roleRelay, env: []string{sparing}, files: []*os.File{tap},
		config: relayConfig{UID: s.UID, GID: s.GID, Programs: findUserNetworks()},
	}
	if os.Geteuid() != 0 { // only in a user namespace can it become somebody else
		c.namespaces, c.uids, c.gids = unix.CLONE_NEWUSER, []mapping{{s.UID, s.UID}}, []mapping{{s.GID, s.GID}}
	}
	p, link, err = c.start()
	if err != nil {
		return nil, conn{}, err
	}
	if _, err = awaitReady(link, nil); err != nil {
		link.Close()
		p.Kill()
		p.Wait()
		return nil, conn{}, err
	}
	return p, link, nil
}

// endRelay closes the link, upon which a relay ends with what it has started, and waits for that.
func endRelay(p *os.Process, link conn) {
	if p == nil {
		return
	}
	link.Close()
	late := time.AfterFunc(time.Second, func() { p.Kill() })
	p.Wait()
	late.Stop()
}

// relayMain ends with its link, that is, with the keeper or the process that opened the prison.
func relayMain(config []byte, _ int) int {
	link, err := fileConn(inheritedFile(0))
	if err != nil {
		return 1
	}
	tap := inheritedFile(1)
	if _, err := link.recv(&announcement{}); err != nil {
		return 1
	}
	r := relay{tap: tap}
	if err = json.Unmarshal(config, &r.relayConfig); err == nil {
		err = r.becomeHarmless()
	}
	var net *connected
	if err == nil {
		net, err = r.connect()
	}
	if err != nil {
		link.send(announcement{Error: err.Error()})
		return 1
	}
	if link.send(announcement{}) != nil {
		return 1
	}
	r.run(net, untilGone(link))
	return 0
}

// becomeHarmless makes this process the phantom: neither it nor the network program, which reads what the agent writes, needs
// a right of the user's. Programs are started from this thread, which keeps no capability over its user namespace either.
func (r *relay) becomeHarmless() error {
	unix.Umask(0o077)
	inNamespace := os.Geteuid() != 0
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(r.GID, r.GID, r.GID), syscall.Setresuid(r.UID, r.UID, r.UID)); err != nil {
		return fmt.Errorf("become the phantom: %w", err)
	}
	if inNamespace { // root on the host has lost its capabilities with its uid
		return dropPrivileges()
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// connected is a network program at work.
type connected struct {
	cmd *exec.Cmd
	frames
	ended chan struct{}
}

// connect starts the first network program that answers.
func (r *relay) connect() (*connected, error) {
	var errs []error
	for _, n := range userNetworks {
		path := r.Programs[n.name]
		if path == "" {
			continue
		}
		cmd, f, err := n.start(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := greet(f); err != nil {
			f.Close()
			errs = append(errs, failed(cmd, err))
			continue
		}
		c := &connected{cmd: cmd, frames: f, ended: make(chan struct{})}
		go func() {
			defer close(c.ended)
			cmd.Wait()
		}()
		return c, nil
	}
	if len(errs) == 0 {
		return nil, errors.New("no program for it is found any more")
	}
	return nil, errors.Join(errs...)
}

// run relays until the link ends. A network program that ends gets a successor: connections are lost,
// the network is not.
func (r *relay) run(c *connected, gone <-chan struct{}) {
	for c != nil {
		r.pump(c, gone)
		for c = nil; c == nil; {
			select {
			case <-gone:
				return
			case <-time.After(helperPause):
				c, _ = r.connect()
			}
		}
	}
}

// pump copies frames both ways until something ends, and ends the program.
func (r *relay) pump(c *connected, gone <-chan struct{}) {
	r.tap.SetReadDeadline(time.Time{})
	out, in := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(out)
		r.copyOut(c)
	}()
	go func() {
		defer close(in)
		r.copyIn(c)
	}()
	select {
	case <-gone:
	case <-out:
	case <-in:
	case <-c.ended:
	}
	c.Close()
	c.cmd.Process.Kill()
	<-c.ended
	r.tap.SetReadDeadline(time.Now())
	<-out
	<-in
}

func (r *relay) copyOut(c *connected) {
	buf := make([]byte, maxFrame)
	for {
		n, err := r.tap.Read(buf)
		if err != nil {
			return
		}
		if mayLeave(buf[:n]) && c.writeFrame(buf[:n]) != nil {
			return
		}
	}
}

func (r *relay) copyIn(c *connected) {
	buf := make([]byte, maxFrame)
	for {
		n, err := c.readFrame(buf)
		if err != nil || n == 0 {
			return
		}
		r.tap.Write(buf[:n]) //nolint:errcheck // an interface drops what it cannot take
	}
}

const (
	ethernetHeader = 14
	ipv4Header     = 20
	noOptions      = 0x45 // version 4, a header of that length: options lead by way of other addresses
)

// mayLeave reports whether a frame may go out: ARP, and IPv4 packets to where an open network leads. An
// agent cannot change the routes inside, but can bind a socket to the interface, for which the kernel
// takes every address to be on the link (ip_route_output_key_hash_rcu), so routes alone close nothing.
func mayLeave(frame []byte) bool {
	if len(frame) < ethernetHeader {
		return false
	}
	packet := frame[ethernetHeader:]
	switch binary.BigEndian.Uint16(frame[12:]) {
	case unix.ETH_P_ARP:
		return true
	case unix.ETH_P_IP:
		return len(packet) >= ipv4Header && packet[0] == noOptions && reachable(address(packet[16:20]))
	}
	return false
}

// reachable says where an open network leads. Of its own network only the name server is there: the gateway
// could be taken for the host's loopback.
func reachable(a address) bool {
	if ownNetwork.contains(a) {
		return a == dnsAddress
	}
	for _, p := range closed() {
		if p.contains(a) {
			return false
		}
	}
	return true
}

// greet asks for the gateway's hardware address, RFC 826, and waits for the answer: then frames are carried.
func greet(f frames) error {
	question := arp(1, ownMAC, ownAddress, [6]byte{}, gatewayAddress)
	if err := f.writeFrame(question); err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() {
		buf := make([]byte, maxFrame)
		for {
			n, err := f.readFrame(buf)
			if err == nil && n == 0 {
				err = errors.New("the connection was closed")
			}
			if err != nil || isAnswer(buf[:n]) {
				answered <- err
				return
			}
		}
	}()
	select {
	case err := <-answered:
		return err
	case <-time.After(helperPatience):
		return errors.New("no answer")
	}
}

// arp builds a frame with an ARP packet for IPv4 over Ethernet.
func arp(operation uint16, mac [6]byte, sender address, targetMAC [6]byte, target address) []byte {
	frame := bytes.Repeat([]byte{0xff}, 6)
	frame = append(frame, mac[:]...)
	frame = binary.BigEndian.AppendUint16(frame, unix.ETH_P_ARP)
	frame = binary.BigEndian.AppendUint16(frame, unix.ARPHRD_ETHER)
	frame = binary.BigEndian.AppendUint16(frame, unix.ETH_P_IP)
	frame = append(frame, 6, 4)
	frame = binary.BigEndian.AppendUint16(frame, operation)
	frame = append(append(frame, mac[:]...), sender[:]...)
	return append(append(frame, targetMAC[:]...), target[:]...)
}

func isAnswer(frame []byte) bool {
	if len(frame) < 42 || binary.BigEndian.Uint16(frame[12:]) != unix.ETH_P_ARP {
		return false
	}
	return binary.BigEndian.Uint16(frame[20:]) == 2 && address(frame[28:32]) == gatewayAddress
}
