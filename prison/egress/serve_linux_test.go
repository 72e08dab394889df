package egress

import (
	"encoding/json"
	"os"
	"runtime"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// TestInterfaceStaysOpen collects garbage. Once, that closed the file of the interface, and no packet left any more.
func TestInterfaceStaysOpen(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[1])
	names, err := os.CreateTemp(t.TempDir(), "names")
	if err != nil {
		t.Fatal(err)
	}
	w := wire.Wiring{MTU: 1500, Inside: inside.As4(), Gateway: gateway.As4(), Resolver: resolves.As4(), Bits: 24}
	config, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newServed(config, []*os.File{os.NewFile(uintptr(fds[0]), "tap")}, names, control.Order{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for range 5 {
		runtime.GC()
		runtime.Gosched()
	}
	var st unix.Stat_t
	if err := unix.Fstat(e.wire.FD, &st); err != nil {
		t.Errorf("the interface: %v", err)
	}
	if _, err := newServed(config, nil, names, control.Order{}); err == nil {
		t.Error("it serves without an interface")
	}
}
