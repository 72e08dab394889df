//go:build linux

package native_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/usernet"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// noDeviceEnv is set in a test binary for which the TUN device is hidden.
const noDeviceEnv = "PRISONTEST_NO_DEVICE"

// TestNoDevice repeats tests of the network where the TUN device cannot be opened.
func TestNoDevice(t *testing.T) {
	if os.Getenv(noDeviceEnv) != "" {
		startPairs(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can hide a device")
	}
	needNative(t)
	t.Run("root", func(t *testing.T) { withoutDevice(t, prisontest.CopyOfTest(t)) })
	t.Run("ordinary user", func(t *testing.T) {
		name := prisontest.OrdinaryUser(t).Username
		withoutDevice(t, "runuser", "-u", name, "--", prisontest.CopyOfTest(t))
	})
}

// withoutDevice runs a command of this test binary with the TUN device hidden.
func withoutDevice(t *testing.T, command ...string) {
	temp := filepath.Join(filepath.Dir(command[len(command)-1]), "tmp")
	if err := errors.Join(os.Mkdir(temp, 0o777), os.Chmod(temp, 0o777)); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"-m", "sh", "-c", `mount -t tmpfs none /dev/net && exec "$@"`, "sh"}
	arguments = append(append(arguments, command...), "-test.v", "-test.run=^TestNetworkEnds$|^TestNetworkKilled$|^TestNoDevice$")
	cmd := exec.CommandContext(t.Context(), "unshare", arguments...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, noDeviceEnv+"=1")
	out, err := cmd.CombinedOutput()
	for _, name := range []string{"TestNetworkEnds", "TestNetworkKilled", "TestNoDevice"} {
		if err != nil || !strings.Contains(string(out), "--- PASS: "+name+" ") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// startPairs starts prisons whose interface is one of a pair.
func startPairs(t *testing.T) {
	b, s := prepared(t)
	for _, network := range []prison.Network{prison.NetworkAllowlist, prison.NetworkOpen, prison.NetworkNone} {
		s.Network = network
		i, err := b.Start(t.Context(), s)
		if err != nil || i.Lacks(prison.NoTUN) != (network != prison.NetworkNone) {
			t.Errorf("network %d: %+v, %v", network, i.Weaker, err)
		}
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	s.Network = prison.NetworkOpen
	err := usernet.Check(s, func() error { return errors.New("not in this kernel") })
	var u *prison.Unavailable
	if !errors.As(err, &u) || !strings.Contains(u.Reason, "not in this kernel") || len(u.Mend) != 1 || u.Mend[0] != "sudo modprobe tun" {
		t.Errorf("without both: %+v", err)
	}
}
