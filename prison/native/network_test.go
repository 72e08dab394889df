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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	_ "github.com/git-airlock/git-airlock/prison/egress" // provides the other end of an open network
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"golang.org/x/sys/unix"
)

// dialEnv holds addresses or URLs, and makes the test binary connect to them inside. deviceEnv names the interface for the sockets.
// patientEnv makes each wait for an answer as long as a busy machine may need.
const (
	dialEnv    = "PRISONTEST_DIAL"
	deviceEnv  = "PRISONTEST_DEVICE"
	patientEnv = "PRISONTEST_PATIENT"
)

func dialAndTell(addresses string) int {
	d := net.Dialer{Timeout: 2 * time.Second}
	if os.Getenv(patientEnv) != "" {
		d.Timeout = patience
	}
	if device := os.Getenv(deviceEnv); device != "" {
		d.Control = func(_, _ string, c syscall.RawConn) (err error) {
			c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) })
			return err
		}
	}
	longer := d
	longer.Timeout = patience
	client := http.Client{Timeout: patience, Transport: &http.Transport{DialContext: longer.DialContext}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	results := map[string]string{}
	for address := range strings.SplitSeq(addresses, ",") {
		wg.Go(func() {
			var c io.Closer
			var err error
			switch to, datagram := strings.CutPrefix(address, "udp:"); {
			case strings.HasPrefix(address, "http"):
				var r *http.Response
				if r, err = client.Get(address); err == nil { //nolint:bodyclose // closed below
					c = r.Body
				}
				if err == nil && r.StatusCode == http.StatusForbidden {
					err = errors.New(r.Status)
				}
			case datagram:
				c, err = exchange(d, to)
			case strings.HasPrefix(address, "lookup:"):
				text, err := lookupAll(strings.TrimPrefix(address, "lookup:"))
				if err != nil {
					text = err.Error()
				}
				mu.Lock()
				defer mu.Unlock()
				results[address] = text
				return
			default:
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

// exchange sends a datagram and waits for the answer.
func exchange(d net.Dialer, to string) (net.Conn, error) {
	c, err := d.Dial("udp", to)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(d.Timeout))
	if _, err = c.Write([]byte("x")); err == nil {
		_, err = c.Read(make([]byte, 10))
	}
	return c, err
}

// needNetwork skips the test if an open network is impossible.
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

// bringSelf copies the test binary into the workspace.
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

// dialAll connects from inside to each address. It returns the errors by address; an empty error is a success.
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

// inOpen opens a prison with an open network, and copies the test binary into its workspace.
func inOpen(t *testing.T) prison.Prison {
	t.Helper()
	b := needNative(t)
	_, s := prepared(t)
	s.Network = prison.NetworkOpen
	p, err := b.Open(t.Context(), s)
	needNetwork(t, err)
	t.Cleanup(func() { p.Close() })
	bringSelf(t, p)
	return p
}

// TestRegistry connects to the package registry that this machine uses.
func TestRegistry(t *testing.T) {
	if !prisontest.Required("network") {
		t.Skip("SKIPPED: nobody promised that a package registry can be reached (AIRLOCK_TEST_REQUIRE=network)")
	}
	url := registry(t)
	if got := dial(t, inOpen(t), url); got != "" {
		t.Errorf("%s: %s", url, got)
	}
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

// networkOf returns the process that carries a prison's packets.
func networkOf(t *testing.T, s prison.Spec) (pid int) {
	t.Helper()
	var state struct{ Relay struct{ PID int } }
	content, err := os.ReadFile(filepath.Join(s.Dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &state); err != nil || state.Relay.PID == 0 {
		t.Fatalf("no process in %s, %v", content, err)
	}
	return state.Relay.PID
}

// TestRunningBeforeNetwork runs a command in a prison whose network is not ready yet.
func TestRunningBeforeNetwork(t *testing.T) {
	b, s := prepared(t)
	s.Network = prison.NetworkOpen
	err := errors.New("nothing reported that the prison runs")
	s.Running = func(prison.Isolation) {
		var box prison.Prison
		if box, err = b.Attach(t.Context(), s); err == nil {
			var status int
			status, err = box.Exec(t.Context(), prison.Process{Argv: []string{"true"}})
			err = errors.Join(err, box.Close())
			if status != 0 {
				err = errors.Join(err, fmt.Errorf("the status is %d", status))
			}
		}
	}
	_, startErr := b.Start(t.Context(), s)
	needNetwork(t, startErr)
	if err != nil {
		t.Error(err)
	}
	networkOf(t, s) // waits until the start has ended
}

// TestNetworkEnds ends prisons in every way, and checks that no process or file of their networks is left.
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
			pid, k := networkOf(t, s), stateOf(t, s)
			harmless(t, pid, s)
			if err := end(b, s, k); err != nil {
				t.Fatal(err)
			}
			expectEnd(t, pid)
			if err := b.Stop(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			expectNothing(t, s, k)
		})
	}
}

// harmless checks the user and the rights of a network's process, since that process reads the agent's packets. No other process may have
// its uid, and it must have no rights.
func harmless(t *testing.T, pid int, s prison.Spec) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nGroups:\t \n", "\nNoNewPrivs:\t1\n", "\nCapEff:\t0000000000000000\n", "\nCapPrm:\t0000000000000000\n", "\nSeccomp:\t2\n",
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("process %d: no %q in %s", pid, want, status)
		}
	}
	var uids [4]int
	_, rest, _ := strings.Cut(string(status), "\nUid:")
	fmt.Sscan(rest, &uids[0], &uids[1], &uids[2], &uids[3])
	for _, uid := range uids {
		if uid == 0 || uid == s.UID || uid == os.Getuid() || uid != uids[0] {
			t.Errorf("process %d is of uids %v; the phantom is %d", pid, uids, s.UID)
		}
	}
	if info, err := os.Stat(fmt.Sprintf("/proc/%d/fd", pid)); err != nil || int(info.Sys().(*syscall.Stat_t).Uid) == uids[0] { // proc(5)
		t.Errorf("process %d can be looked into by its user: %v", pid, err)
	}
	if limits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid)); !bytes.Contains(limits, []byte("Max open files            4096                 4096 ")) {
		t.Errorf("%s", limits)
	}
}

func expectEnd(t *testing.T, pid int) {
	t.Helper()
	for begun := time.Now(); running(pid); time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			t.Fatalf("process %d runs: %q", pid, name)
		}
	}
}

// TestNetworkLeavesKeeper checks that the keeper keeps its user, although one of its threads confined itself to start the network.
func TestNetworkLeavesKeeper(t *testing.T) {
	_, s := startedOpen(t)
	keeper := stateOf(t, s).Keeper.PID
	others := func() (others string) {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", keeper))
		if err != nil || len(tasks) == 0 {
			t.Fatalf("threads of the keeper: %q, %v", tasks, err)
		}
		for _, task := range append(tasks, fmt.Sprintf("/proc/%d/status", keeper)) {
			status, _ := os.ReadFile(task) // empty if the thread has ended
			_, uid, _ := strings.Cut(string(status), "\nUid:\t")
			if own := strconv.Itoa(os.Getuid()) + "\t"; len(status) > 0 && !strings.HasPrefix(uid, own) {
				others += task + "\n" + string(status)
			}
		}
		return others
	}
	for begun := time.Now(); others() != ""; time.Sleep(time.Millisecond) { // that thread ends soon
		if time.Since(begun) > patience {
			t.Fatalf("of another user: %s", others())
		}
	}
}

// TestNetworkKilled kills the process that carries packets several times. Each time a successor must start, and the
// interface must stay.
func TestNetworkKilled(t *testing.T) {
	b, s := startedOpen(t)
	p := attach(t, b, s)
	index := func() string {
		var out bytes.Buffer
		p.Exec(t.Context(), prison.Process{Argv: []string{"cat", "/proc/net/dev_mcast", "/proc/net/route"}, Stdout: &out, Stderr: &out})
		return out.String()
	}
	before := index()
	for range 3 {
		pid := networkOf(t, s)
		syscall.Kill(pid, syscall.SIGKILL)
		expectEnd(t, pid)
		next := pid
		for begun := time.Now(); next == pid || !running(next); time.Sleep(time.Millisecond) {
			if next = networkOf(t, s); time.Since(begun) > patience {
				t.Fatal("there is no successor")
			}
		}
		harmless(t, next, s)
	}
	if after := index(); after != before || !strings.Contains(after, "eth0") {
		t.Errorf("%q, then %q", before, after)
	}
}

// TestNetworkRests checks that the process with the packets releases the pages of its program while the network is unused.
func TestNetworkRests(t *testing.T) {
	_, s := startedOpen(t)
	pid := networkOf(t, s)
	mapped := func() (kB int) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			if f := strings.Fields(line); f[0] == "RssFile:" || f[0] == "RssShmem:" { // RssShmem counts the pages if the program is on a tmpfs
				n, _ := strconv.Atoi(f[1])
				kB += n
			}
		}
		return kB
	}
	const most = 6 << 10 // in kB; a start needs more than twice as much
	for begun := time.Now(); mapped() > most; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("%d kB of the program are mapped", mapped())
		}
	}
}

// TestNetworkProgramOfSystem puts another program of the same name before the system's folders in PATH, and checks that it is not
// started.
func TestNetworkProgramOfSystem(t *testing.T) {
	dir := filepath.Dir(prisontest.CopyOfTest(t))
	used := filepath.Join(dir, "used")
	if err := errors.Join(os.Mkdir(used, 0o777), os.Chmod(used, 0o777)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"newuidmap", "newgidmap", "sh"} {
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
