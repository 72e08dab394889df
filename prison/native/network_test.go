//go:build linux

package native_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"golang.org/x/sys/unix"
)

// dialEnv, with an address or a URL, makes the test binary connect to it, inside. deviceEnv binds the
// socket to that interface.
const (
	dialEnv   = "PRISONTEST_DIAL"
	deviceEnv = "PRISONTEST_DEVICE"
)

func dialAndTell(addresses string) int {
	d := net.Dialer{Timeout: 2 * time.Second}
	if device := os.Getenv(deviceEnv); device != "" {
		d.Control = func(_, _ string, c syscall.RawConn) (err error) {
			c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) })
			return err
		}
	}
	client := http.Client{Timeout: 20 * time.Second}
	var mu sync.Mutex
	var wg sync.WaitGroup
	results := map[string]string{}
	for address := range strings.SplitSeq(addresses, ",") {
		wg.Go(func() {
			var c io.Closer
			var err error
			if strings.HasPrefix(address, "http") {
				var r *http.Response
				if r, err = client.Get(address); err == nil { //nolint:bodyclose // closed below
					c = r.Body
				}
			} else {
				c, err = d.Dial("tcp", address)
			}
			mu.Lock()
			defer mu.Unlock()
			results[address] = ""
			if err != nil {
				results[address] = err.Error()
				return
			}
			c.Close()
		})
	}
	wg.Wait()
	json.NewEncoder(os.Stdout).Encode(results)
	return 0
}

// needNetwork skips where there can be no open network.
func needNetwork(t *testing.T, err error) {
	t.Helper()
	var u *prison.Unavailable
	if errors.As(err, &u) && !prisontest.Required("network") {
		t.Skipf("SKIPPED, AN OPEN NETWORK IS NOT TESTED: %v; to mend it: %s", err, strings.Join(u.Mend, "; "))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// bringSelf puts the test binary into the workspace.
func bringSelf(t *testing.T, p prison.Prison) {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	status, err := p.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", "cat > try && chmod 755 try"}, Stdin: self})
	if err != nil || status != 0 {
		t.Fatalf("bring the program in: %d, %v", status, err)
	}
}

// dialAll connects from inside and returns what came of it by address, empty for success.
func dialAll(t *testing.T, p prison.Prison, addresses []string, env ...string) (results map[string]string) {
	t.Helper()
	var out bytes.Buffer
	status, err := p.Exec(t.Context(), prison.Process{
		Argv: []string{"./try"}, Env: append(env, dialEnv+"="+strings.Join(addresses, ",")), Stdout: &out, Stderr: &out,
	})
	if err != nil || status != 0 || json.Unmarshal(out.Bytes(), &results) != nil {
		t.Fatalf("dial: %d, %v, %s", status, err, out.String())
	}
	return results
}

func dial(t *testing.T, p prison.Prison, address string) string {
	t.Helper()
	return dialAll(t, p, []string{address})[address]
}

// openEach runs a test in a prison with an open network, once with every program there is for it.
func openEach(t *testing.T, test func(*testing.T, prison.Prison)) {
	names := native.UserNetworks()
	if len(names) == 0 {
		names = []string{"none"}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			defer native.OnlyUserNetwork(name)()
			b := needNative(t)
			_, s := prepared(t)
			s.Network = prison.NetworkOpen
			p, err := b.Open(t.Context(), s)
			needNetwork(t, err)
			defer p.Close()
			bringSelf(t, p)
			test(t, p)
		})
	}
}

// TestNetworkWalls makes a host of its own, with services on loopback and on the address where clouds have
// their secrets, and tries to reach them in every way an agent has.
func TestNetworkWalls(t *testing.T) {
	const isolatedEnv = "PRISONTEST_ISOLATED"
	if os.Getenv(isolatedEnv) == "" {
		if os.Geteuid() != 0 {
			t.Skip("only root can make a host of its own")
		}
		needNative(t)
		for _, tool := range []string{"ip", "unshare"} {
			_, err := exec.LookPath(tool)
			prisontest.Need(t, "network", err)
		}
		cmd := exec.Command("unshare", "-n", "sh", "-c", `ip link set lo up && ip link add world type veth peer name peer && ip link set peer up && ip link set world up &&
			ip addr add 198.51.100.1/24 dev world && ip addr add 169.254.169.254/16 dev world && ip route add default via 198.51.100.254 &&
			exec "$0" -test.v -test.run='^TestNetworkWalls$'`, os.Args[0])
		cmd.Env = append(os.Environ(), isolatedEnv+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		} else if bytes.Contains(out, []byte("SKIP")) {
			t.Skipf("%s", out)
		} else {
			t.Logf("%s", out)
		}
		return
	}
	hosts := []string{"127.0.0.1", "169.254.169.254", "198.51.100.1"}
	for _, host := range hosts {
		for _, port := range []string{"53", "80"} {
			l, err := net.Listen("tcp", net.JoinHostPort(host, port))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
	}
	openEach(t, func(t *testing.T, p prison.Prison) {
		service := "198.51.100.1:80"
		addresses := []string{service}
		for _, host := range append(hosts[:2], "127.0.0.2", "10.0.2.2", "10.0.2.4", "0.0.0.1", "255.255.255.255") {
			addresses = append(addresses, host+":53", host+":80")
		}
		for _, device := range []string{"", "eth0"} {
			for address, got := range dialAll(t, p, addresses, deviceEnv+"="+device) {
				if (got == "") != (address == service) {
					t.Errorf("through %q to %s: %q", device, address, got)
				} else if got != "" {
					t.Logf("through %q: %s", device, got)
				}
			}
		}
	})
}

// TestRegistry reaches the package registry that this machine uses.
func TestRegistry(t *testing.T) {
	if !prisontest.Required("network") {
		t.Skip("SKIPPED: nobody promised that a package registry can be reached (AIRLOCK_TEST_REQUIRE=network)")
	}
	url := registry(t)
	openEach(t, func(t *testing.T, p prison.Prison) {
		if got := dial(t, p, url); got != "" {
			t.Errorf("%s: %s", url, got)
		}
	})
}

func registry(t *testing.T) string {
	for _, ask := range []string{"go env GOPROXY", "npm config get registry", "/usr/local/go/bin/go env GOPROXY"} {
		words := strings.Fields(ask)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, _ := cmd.Output()
		for _, url := range strings.FieldsFunc(string(out), func(r rune) bool { return strings.ContainsRune(",| \n", r) }) {
			if strings.HasPrefix(url, "http") {
				return url
			}
		}
	}
	t.Fatal("neither go nor npm knows a registry")
	return ""
}

// startedOpen starts a prison with an open network.
func startedOpen(t *testing.T) (prison.Backend, prison.Spec) {
	t.Helper()
	b, s := prepared(t)
	s.Network = prison.NetworkOpen
	_, err := b.Start(t.Context(), s)
	needNetwork(t, err)
	return b, s
}

// relayOf returns the processes of a prison's network: the relay and what it has started.
func relayOf(t *testing.T, s prison.Spec) (pids []int) {
	t.Helper()
	var state struct{ Relay struct{ PID int } }
	content, err := os.ReadFile(filepath.Join(s.Dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &state); err != nil || state.Relay.PID == 0 {
		t.Fatalf("no relay in %s, %v", content, err)
	}
	out, err := exec.Command("ps", "-e", "-o", "pid=,ppid=").Output()
	prisontest.Need(t, "network", err)
	pids = []int{state.Relay.PID}
	for range 5 {
		for line := range strings.Lines(string(out)) {
			var pid, parent int
			fmt.Sscan(line, &pid, &parent)
			if contains(pids, parent) && !contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	if len(pids) < 2 {
		t.Fatalf("the network's processes: %v", pids)
	}
	return pids
}

func contains(list []int, n int) bool {
	for _, m := range list {
		if m == n {
			return true
		}
	}
	return false
}

// TestNetworkEnds ends prisons in every way, and looks for what their networks leave.
func TestNetworkEnds(t *testing.T) {
	for name, end := range map[string]func(prison.Backend, prison.Spec, keptState) error{
		"stop":          func(b prison.Backend, s prison.Spec, _ keptState) error { return b.Stop(context.Background(), s) },
		"keeper killed": func(_ prison.Backend, _ prison.Spec, k keptState) error { return unix.Kill(k.Keeper.PID, unix.SIGKILL) },
		"init killed":   func(_ prison.Backend, _ prison.Spec, k keptState) error { return unix.Kill(k.Init.PID, unix.SIGKILL) },
		"keeper and init": func(_ prison.Backend, _ prison.Spec, k keptState) error {
			return errors.Join(unix.Kill(k.Keeper.PID, unix.SIGKILL), unix.Kill(k.Init.PID, unix.SIGKILL))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := startedOpen(t)
			pids, k := relayOf(t, s), stateOf(t, s)
			for _, pid := range pids {
				harmless(t, pid, s)
			}
			if err := end(b, s, k); err != nil {
				t.Fatal(err)
			}
			expectEnd(t, pids)
			if err := b.Stop(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			expectNothing(t, s, k)
		})
	}
}

// harmless looks at whom a process of the network is, which reads what the agent sends: the phantom in all, without rights.
func harmless(t *testing.T, pid int, s prison.Spec) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("\nUid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", s.UID), fmt.Sprintf("\nGid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", s.GID),
		"\nGroups:\t \n", "\nNoNewPrivs:\t1\n", "\nCapEff:\t0000000000000000\n", "\nCapPrm:\t0000000000000000\n",
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("process %d: no %q in %s", pid, want, status)
		}
	}
}

func expectEnd(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		for begun := time.Now(); running(pid); time.Sleep(time.Millisecond) {
			if time.Since(begun) > 5*time.Second {
				name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				t.Fatalf("process %d runs: %q", pid, name)
			}
		}
	}
}

// TestNetworkProgramKilled kills the program under a prison, which gets another one.
func TestNetworkProgramKilled(t *testing.T) {
	b, s := startedOpen(t)
	p, err := b.Attach(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	bringSelf(t, p)
	pids := relayOf(t, s)
	for _, pid := range pids[1:] {
		unix.Kill(pid, unix.SIGKILL)
	}
	expectEnd(t, pids[1:])
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := hostAddress(t)
	address = fmt.Sprintf("%s:%d", address, l.Addr().(*net.TCPAddr).Port)
	got := ""
	for range 10 {
		if got = dial(t, p, address); got == "" {
			return
		}
	}
	t.Errorf("the network does not come back: %s", got)
}

func hostAddress(t *testing.T) string {
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// TestNetworkUnavailable wants a network where no program for it is found.
func TestNetworkUnavailable(t *testing.T) {
	b, s := prepared(t)
	defer native.OnlyUserNetwork("none")()
	s.Network = prison.NetworkOpen
	_, err := b.Start(t.Context(), s)
	var u *prison.Unavailable
	if !errors.As(err, &u) {
		t.Fatalf("%v", err)
	}
	if len(u.Mend) != 1 || !strings.Contains(u.Mend[0], "slirp4netns") {
		t.Errorf("%+v", u)
	}
}

// TestNetworkProgramOfSystem has another program of the name on PATH, before the system's folders: it is not started.
func TestNetworkProgramOfSystem(t *testing.T) {
	names := native.UserNetworks()
	_, err := exec.LookPath(names[0])
	prisontest.Need(t, "network", err)
	dir := filepath.Dir(prisontest.CopyOfTest(t))
	used := filepath.Join(dir, "used")
	if err := errors.Join(os.Mkdir(used, 0o777), os.Chmod(used, 0o777)); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "newuidmap", "newgidmap", "sh") {
		script := "#!/bin/sh\n: >" + used + "/" + name + "\nexec /usr/bin/" + name + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	startedOpen(t)
	started, err := os.ReadDir(used)
	if err != nil || len(started) > 0 {
		t.Errorf("programs of PATH were started: %v, %v", started, err)
	}
}
