package usernet

import (
	"bytes"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPairBesideNobody checks that the socket of a pair has the frames of the interface, and that the kernel at its end is silent.
func TestPairBesideNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make namespaces without a user namespace")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		socket, err := MakePair()
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(socket)
		askGateway(t, socket)
		seeOther(t, socket)
	}()
	<-done
}

// askGateway sends a datagram to the gateway, and checks that the socket gets only the question for the gateway's hardware address.
func askGateway(t *testing.T, socket int) {
	c, err := net.Dial("udp4", net.JoinHostPort(gatewayAddress.String(), "9"))
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Error(err)
		return
	}
	frame := make([]byte, interfaceMTU)
	for deadline := time.Now().Add(time.Minute); ; {
		n, err := unix.Read(socket, frame)
		switch {
		case err == nil && bytes.HasPrefix(frame[:n], append(bytes.Repeat([]byte{0xff}, 6), ownMAC[:]...)):
			return
		case err != nil && err != unix.EAGAIN || time.Now().After(deadline):
			t.Errorf("no question: %v", err)
			return
		case err == nil && !bytes.Equal(frame[6:12], ownMAC[:]):
			t.Errorf("a frame of somebody else: % x", frame[:n])
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// seeOther checks the second interface in its namespace.
func seeOther(t *testing.T, socket int) {
	there, err := unix.IoctlRetInt(socket, unix.SIOCGSKNS)
	if err != nil {
		t.Error(err)
		return
	}
	defer unix.Close(there)
	if err := unix.Setns(there, unix.CLONE_NEWNET); err != nil {
		t.Error(err)
		return
	}
	devices, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil || !strings.Contains(string(devices), interfaceName+":") {
		t.Errorf("%s, %v", devices, err)
	}
	addresses, err := os.ReadFile("/proc/thread-self/net/if_inet6")
	if err == nil && strings.Contains(string(addresses), interfaceName) {
		t.Errorf("the kernel has addresses there:\n%s", addresses)
	}
}
