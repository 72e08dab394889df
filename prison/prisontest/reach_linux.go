package prisontest

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/calls"

	"golang.org/x/sys/unix"
)

// answerSeconds is how long a connection may wait for an answer or a refusal.
const answerSeconds = 10

// farPort is the port on which the oracle listens.
const farPort = 4180

// nearby is an address of the oracle that an open network must reach. It proves that the oracle receives.
var nearby = netip.MustParseAddr("198.51.100.10")

// farClosed are addresses that an open network must never reach.
var farClosed = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("169.254.20.10"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"),
	netip.MustParseAddr("10.77.1.1"), netip.MustParseAddr("172.31.77.1"), netip.MustParseAddr("192.168.77.1"),
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("64:ff9b::a9fe:a9fe"), netip.MustParseAddr("fe80::77"),
}

// oracle listens on these addresses in its own network namespace, to which this host has routes. No packet leaves the machine.
type oracle struct {
	mu    sync.Mutex
	heard map[string]bool // texts of the received datagrams
}

// newOracle makes an oracle. It must run as root.
func newOracle(t *testing.T) *oracle {
	t.Helper()
	lockRoutes(t)
	name := fmt.Sprintf("prisontest%d", os.Getpid())
	script := `set -e
		for left in /sys/class/net/pt[0-9]*; do [ ! -e $left ] || ip link del ${left##*/}; done # of a test that was killed
		ip netns add $1; ip link add $2 type veth peer name world netns $1
		ip addr add 198.51.100.1/29 dev $2; ip addr add fd00:77::1/64 dev $2 nodad; ip link set $2 up
		ip -n $1 addr add 198.51.100.2/29 dev world; ip -n $1 addr add fd00:77::2/64 dev world nodad
		ip -n $1 link set lo up; ip -n $1 link set world up; ip -n $1 route add default via 198.51.100.1; ip -n $1 -6 route add default via fd00:77::1
		shift 2
		for a; do case $a in
			fe80*) ip -n $NS addr add $a/64 dev world nodad ;;
			*:*) ip -n $NS addr add $a/128 dev lo nodad; ip -6 route add $a/128 via fd00:77::2 ;;
			*) ip -n $NS addr add $a/32 dev lo; ip route add $a/32 via 198.51.100.2 ;;
		esac; done`
	link := fmt.Sprintf("pt%d", os.Getpid()%100000)
	args := []string{"-c", script, "sh", name, link, nearby.String()}
	for _, a := range farClosed {
		args = append(args, a.String())
	}
	cmd := exec.Command("sh", args...)
	cmd.Env = append(os.Environ(), "NS="+name)
	t.Cleanup(func() { exec.Command("sh", "-c", "ip link del "+link+"; ip netns del "+name).Run() }) // the routes are removed with the link
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	o := &oracle{heard: map[string]bool{}}
	for _, a := range append([]netip.Addr{nearby}, farClosed...) {
		if !a.IsLinkLocalUnicast() || a.Is4() {
			o.listen(t, name, netip.AddrPortFrom(a, farPort).String())
		}
	}
	return o
}

// lockRoutes waits until no other test on this machine has routes to an oracle.
func lockRoutes(t *testing.T) {
	t.Helper()
	lock, err := os.OpenFile("/run/prisontest.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
}

// listen opens a TCP and a UDP socket on a thread in the oracle's network namespace. The sockets stay in that namespace.
func (o *oracle) listen(t *testing.T, network, address string) {
	t.Helper()
	var stream net.Listener
	var datagrams net.PacketConn
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread with the goroutine
		ns, err := os.Open("/run/netns/" + network)
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
			ns.Close()
		}
		if err == nil {
			stream, err = net.Listen("tcp", address)
		}
		if err == nil {
			datagrams, err = net.ListenPacket("udp", address)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stream.Close(); datagrams.Close() })
	go func() {
		buf := make([]byte, 100)
		for {
			n, _, err := datagrams.ReadFrom(buf)
			if err != nil {
				return
			}
			o.mu.Lock()
			o.heard[string(buf[:n])] = true
			o.mu.Unlock()
		}
	}()
}

// way is a way in which a program inside can send data to an address.
type way struct {
	name   string
	stream bool
	calls  func(a netip.Addr, text string, index int) []calls.Call // the calls from socket(2) on; the socket gets descriptor 3
}

// hasTo reports whether this way must reach an open address. In a runtime with its own kernel, which lacks some ways, index is 0.
func (w way) hasTo(index int) bool {
	return w.name == "TCP" || w.name == "UDP" || index > 0 && !strings.Contains(w.name, "without routes")
}

func socketAddress(a netip.Addr, index int) []byte {
	ne := binary.NativeEndian
	if a.Is4() {
		b := binary.BigEndian.AppendUint16(ne.AppendUint16(nil, unix.AF_INET), farPort)
		return append(append(b, a.AsSlice()...), make([]byte, 8)...)
	}
	b := binary.BigEndian.AppendUint16(ne.AppendUint16(nil, unix.AF_INET6), farPort)
	b = append(append(b, 0, 0, 0, 0), a.AsSlice()...)
	if !a.IsLinkLocalUnicast() {
		index = 0
	}
	return ne.AppendUint32(b, uint32(index)) //nolint:gosec // small
}

func familyOf(a netip.Addr) uintptr {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func option(level, name uintptr, value []byte) calls.Call {
	return calls.Call{Number: unix.SYS_SETSOCKOPT, Args: [6]uintptr{3, level, name, calls.Pointer, uintptr(len(value))}, Data: value}
}

// stream connects by TCP, waits for an answer, and connects again to get the result of the first connect.
func stream(options ...calls.Call) func(netip.Addr, string, int) []calls.Call {
	return func(a netip.Addr, _ string, index int) []calls.Call {
		to := socketAddress(a, index)
		connect := calls.Call{Number: unix.SYS_CONNECT, Args: [6]uintptr{3, calls.Pointer, uintptr(len(to))}, Data: to}
		wait := binary.LittleEndian.AppendUint32(nil, 3)
		wait = binary.LittleEndian.AppendUint32(wait, unix.POLLOUT)
		wait = binary.LittleEndian.AppendUint64(wait, answerSeconds)
		wait = binary.LittleEndian.AppendUint64(wait, 0)
		list := append([]calls.Call{{Number: unix.SYS_SOCKET, Args: [6]uintptr{familyOf(a), unix.SOCK_STREAM | unix.SOCK_NONBLOCK}}}, options...)
		return append(list, connect, calls.Call{Number: unix.SYS_PPOLL, Args: [6]uintptr{calls.Pointer, 1, calls.Pointer + 8}, Data: wait}, connect)
	}
}

// datagram sends a text by UDP twice.
func datagram(options ...calls.Call) func(netip.Addr, string, int) []calls.Call {
	return func(a netip.Addr, text string, index int) []calls.Call {
		to := socketAddress(a, index)
		send := calls.Call{Number: unix.SYS_SENDTO, Data: append(append([]byte{}, to...), text...),
			Args: [6]uintptr{3, calls.Pointer + uintptr(len(to)), uintptr(len(text)), 0, calls.Pointer, uintptr(len(to))}}
		list := append([]calls.Call{{Number: unix.SYS_SOCKET, Args: [6]uintptr{familyOf(a), unix.SOCK_DGRAM}}}, options...)
		return append(list, send, send)
	}
}

// withInterface sends a text with IP_PKTINFO, which selects the interface. The data is struct msghdr, iovec, cmsghdr and in_pktinfo.
func withInterface(a netip.Addr, text string, index int) []calls.Call {
	ne := binary.NativeEndian
	if !a.Is4() {
		return nil
	}
	const head, vector, control, to, body = calls.Pointer, calls.Pointer + 56, calls.Pointer + 72, calls.Pointer + 104, calls.Pointer + 120
	var m []byte
	for _, n := range []uint64{to, 16, vector, 1, control, 28, 0} {
		m = ne.AppendUint64(m, n)
	}
	m = ne.AppendUint64(ne.AppendUint64(m, body), uint64(len(text)))
	m = ne.AppendUint64(m, 28)
	m = ne.AppendUint32(ne.AppendUint32(m, unix.IPPROTO_IP), unix.IP_PKTINFO)
	m = append(ne.AppendUint32(m, uint32(index)), make([]byte, 12)...) //nolint:gosec // small
	m = append(append(m, socketAddress(a, index)...), text...)
	send := calls.Call{Number: unix.SYS_SENDMSG, Args: [6]uintptr{3, head, 0}, Data: m}
	return []calls.Call{{Number: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_INET, unix.SOCK_DGRAM}}, send, send}
}

func ways(index int) []way {
	device := option(unix.SOL_SOCKET, unix.SO_BINDTODEVICE, []byte("eth0\x00"))
	direct := option(unix.SOL_SOCKET, unix.SO_DONTROUTE, []byte{1, 0, 0, 0})
	unicast := option(unix.IPPROTO_IP, unix.IP_UNICAST_IF, binary.BigEndian.AppendUint32(nil, uint32(index))) //nolint:gosec // small
	mapped := func(do func(netip.Addr, string, int) []calls.Call) func(netip.Addr, string, int) []calls.Call {
		return func(a netip.Addr, text string, index int) []calls.Call {
			return do(netip.AddrFrom16(a.As16()), text, index)
		}
	}
	return []way{
		{"TCP", true, stream()}, {"TCP bound to the interface", true, stream(device)}, {"TCP without routes", true, stream(direct)},
		{"TCP mapped", true, mapped(stream())}, {"TCP mapped and bound", true, mapped(stream(device))},
		{"UDP", false, datagram()}, {"UDP bound to the interface", false, datagram(device)}, {"UDP without routes", false, datagram(direct)},
		{"UDP mapped", false, mapped(datagram())}, {"UDP through an interface", false, datagram(unicast)}, {"UDP with IP_PKTINFO", false, withInterface},
	}
}

// Reach starts a prison with an open network, and tries in every way to reach addresses that it must not reach.
func Reach(t *testing.T, b prison.Backend, o Options) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a network beside this one") // packets of an ordinary user take the same way
	}
	_, err := exec.LookPath("ip")
	Need(t, "network", err)
	x := startOpen(t, b, o)
	index := 0
	fmt.Sscan(x.sh(t, "sed -n 's/^\\([0-9]*\\)[[:space:]]eth0 .*/\\1/p' /proc/net/igmp").out, &index) // a runtime with its own kernel prints nothing
	ears := newOracle(t)
	for _, w := range ways(index) {
		reached := ears.reached(t, x, w, index, append([]netip.Addr{nearby}, farClosed...))
		if !reached[nearby] && w.hasTo(index) {
			t.Errorf("%s: %v is not reached, where the network leads to", w.name, nearby)
		}
		for _, a := range farClosed {
			if reached[a] {
				t.Errorf("%s: %v is reached", w.name, a)
			}
		}
	}
}

// reached tries to reach all addresses in one way, and returns those that were reached.
func (o *oracle) reached(t *testing.T, x *box, w way, index int, addresses []netip.Addr) map[netip.Addr]bool {
	t.Helper()
	var all []calls.Call
	ends := map[netip.Addr]int{}
	for _, a := range addresses {
		all = append(all, calls.Call{Number: unix.SYS_CLOSE_RANGE, Args: [6]uintptr{3, 1000}})
		all = append(all, w.calls(a, w.name+" to "+a.String(), index)...)
		ends[a] = len(all) - 1
	}
	results, err := calls.Make(t.Context(), x, all)
	if err != nil {
		t.Fatal(err)
	}
	reached := map[netip.Addr]bool{}
	for _, a := range addresses {
		if w.stream {
			errno := unix.Errno(max(0, -results[ends[a]])) //nolint:gosec // not negative
			reached[a] = errno == 0 || errno == unix.EISCONN
			continue
		}
		hears := func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.heard[w.name+" to "+a.String()]
		}
		if a == nearby && w.hasTo(index) {
			eventually(t, "the oracle hears "+w.name, hears) // all earlier datagrams have arrived then
		}
		reached[a] = hears()
	}
	return reached
}
