package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	_ "github.com/git-airlock/git-airlock/prison/egress" // with native, the process that carries the packets of a network
	"github.com/git-airlock/git-airlock/prison/egress/control"
	_ "github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestReach tries to reach addresses that an open network must refuse.
func TestReach(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "runsc", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) { prisontest.Reach(t, b, o) })
}

// TestNetworkKilled kills the processes of an open network on the host. The interface inside must not change, and no packet may leave
// until packets are carried again. Then the prison is started with the other network.
func TestNetworkKilled(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "runsc", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		s := prisontest.NewSpec(t, b, o)
		s.Network = prison.NetworkOpen
		prepare(t, b, s)
		p := again(t, b, s)
		const inside = "cat /proc/net/route /proc/net/arp /etc/resolv.conf | grep -v 00:00:00; hostname"
		carried := func() bool { // the process refuses a closed address at once; without that process, the wait is killed
			status, _ := sh(t, p, "timeout -s KILL 300 bash -c 'exec 3<>/dev/tcp/169.254.169.254/80' 2>/dev/null")
			return status == 1
		}
		await := func(what string, reached func() bool) {
			t.Helper()
			for deadline := time.Now().Add(patience); !reached(); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal(what)
				}
			}
		}
		if !carried() {
			t.Fatal("no packets are carried")
		}
		_, before := sh(t, p, inside)
		relay := relayOf(t, s)
		kill(t, relay)
		await("the process that carries packets has no successor", func() bool { return relayOf(t, s) != relay })
		if !carried() {
			t.Error("the successor carries no packets")
		}
		relay = relayOf(t, s)
		kill(t, parentOf(t, relay))
		await("the process that carries packets outlives its keeper", func() bool { return parentOf(t, relay) == 0 })
		if status, _ := sh(t, p, "timeout -s KILL 0.3 bash -c 'exec 3<>/dev/tcp/169.254.169.254/80' 2>/dev/null"); status == 0 || status == 1 {
			t.Errorf("packets are answered without a process: status %d", status)
		}
		if _, err := b.Attach(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if !carried() {
			t.Error("the next command connects no network")
		}
		mending, end := context.WithCancel(t.Context())
		mended := make(chan struct{})
		go func() {
			defer close(mended)
			b.Mend(mending, s, func() {})
		}()
		relay = relayOf(t, s)
		begun := time.Now()
		kill(t, parentOf(t, relay))
		await("nobody connects the network again", func() bool { return relayOf(t, s) != relay })
		t.Logf("connected again after %v", time.Since(begun))
		if !carried() {
			t.Error("the new keeper's process carries no packets")
		}
		if _, after := sh(t, p, inside); after != before || !strings.Contains(after, "eth0") || !strings.Contains(after, s.Hostname) {
			t.Errorf("%q, then %q", before, after)
		}
		keeper := parentOf(t, relayOf(t, s))
		signal(t, keeper, syscall.SIGSTOP)
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		end()
		<-mended
		await("the network's keeper outlives the prison", func() bool { return parentOf(t, keeper) == 0 })
		if strings.HasSuffix(t.Name(), "podman") {
			return // a restart is the same with all engines, and takes five times as long with Podman
		}
		s.Network = prison.NetworkAllowlist
		if p = again(t, b, s); !carried() {
			t.Error("no packets are carried after a restart")
		}
		sh(t, p, "timeout -s KILL 20 bash -c 'exec 3<>/dev/tcp/198.51.100.10/4180' 2>/dev/null")
		await("an address that no rule allows is not refused for that", func() bool {
			ledger, _ := os.ReadFile(filepath.Join(s.Dir, control.LedgerFile)) // the file may not exist yet
			return bytes.Contains(ledger, []byte(`"address":"198.51.100.10"`)) && bytes.Contains(ledger, []byte("no rule allows it"))
		})
		if err := control.WriteRules(s.Dir, control.Rules{Generation: 7}); err != nil {
			t.Fatal(err)
		}
		await("new rules do not come into force", func() bool {
			state, err := control.ReadState(s.Dir)
			return err == nil && state.Generation == 7 && state.Error == ""
		})
		if err := errors.Join(b.Stop(t.Context(), s), b.Wipe(t.Context(), s)); err != nil {
			t.Fatal(err)
		}
		if left, err := filepath.Glob(filepath.Join(s.Dir, "interface*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

func kill(t *testing.T, pid int) {
	t.Helper()
	signal(t, pid, syscall.SIGKILL)
}

func signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if pid <= 0 { // the process has ended; 0 would kill this process group
		t.Fatalf("process %d", pid)
	}
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// relayOf returns the process that carries the packets of a prison.
func relayOf(t *testing.T, s prison.Spec) (pid int) {
	t.Helper()
	var state struct{ Relay int }
	content, err := os.ReadFile(filepath.Join(s.Dir, "interface.json"))
	if err == nil {
		err = json.Unmarshal(content, &state)
	}
	if err != nil || state.Relay == 0 {
		t.Fatalf("no process in %q, %v", content, err)
	}
	return state.Relay
}

// parentOf returns the parent of a process, or 0 if the process has ended.
func parentOf(t *testing.T, pid int) (parent int) {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if err != nil || len(fields) < 2 {
		t.Fatalf("%q, %v", stat, err)
	}
	if fields[0] == "Z" {
		return 0
	}
	parent, err = strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}
