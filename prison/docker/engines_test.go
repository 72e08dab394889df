package docker_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"github.com/docker/docker/client"
)

// kinds are the engines and runtimes under test.
var kinds = []struct{ name, host, runtime string }{
	{"docker", "", ""},
	{"runsc", os.Getenv("AIRLOCK_TEST_RUNSC"), "runsc"},
	{"podman", cmp.Or(os.Getenv("AIRLOCK_TEST_PODMAN"), "unix:///run/podman/podman.sock"), ""},
}

// onEach runs a test with each of the named engines, beside other tests.
func onEach(t *testing.T, names []string, test func(*testing.T, *docker.Backend, prisontest.Options)) {
	t.Parallel()
	for _, kind := range kinds {
		if !slices.Contains(names, kind.name) {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			b := docker.New(kind.host)
			o := options()
			o.Runtime = kind.runtime
			mayUse(t, kind.name)
			prisontest.Need(t, kind.name, errors.Join(b.CheckRuntime(t.Context(), o.Runtime), b.CheckImage(t.Context(), o.Image)))
			test(t, b, o)
		})
	}
}

// mayUse skips a test of an engine that this user may not use. With go test -short it also skips tests of other engines than Docker's
// own, unless they are required. [TestRootlessPodman] tests an ordinary user's Podman.
func mayUse(t *testing.T, engine string) {
	if testing.Short() && engine != "docker" && !prisontest.Required(engine) {
		t.Skip("it is tested with Docker's own engine and runtime; the others: scripts/test --everywhere")
	}
	if engine == "podman" && os.Geteuid() != 0 && !prisontest.Required(engine) {
		t.Skip("Podman's service is root's alone, and root has tried it")
	}
}

// onEachAsRoot is onEach for work that the engine does alone, in the same way for every user. Only root runs these tests.
func onEachAsRoot(t *testing.T, names []string, test func(*testing.T, *docker.Backend, prisontest.Options)) {
	if os.Geteuid() != 0 {
		t.Skip("root has tried it: what an engine does alone it does for everybody alike")
	}
	onEach(t, names, test)
}

// TestOtherEngines runs the suite with engines and runtimes other than Docker's own.
func TestOtherEngines(t *testing.T) {
	onEach(t, []string{"runsc", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		o.Brief = true
		prisontest.Run(t, b, o)
	})
}

// TestRootlessPodman checks that an ordinary user's service is refused. In Docker's form of the answer, the service does not report that
// it is rootless.
func TestRootlessPodman(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	podman, err := exec.LookPath("podman")
	if err != nil {
		prisontest.Need(t, "podman", err)
	}
	user := cmp.Or(os.Getenv("AIRLOCK_TEST_USER"), "airlock-test")
	if err := exec.Command("id", user).Run(); err != nil {
		prisontest.Need(t, "rootless", err)
	}
	dir, err := os.MkdirTemp("", "walls")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if out, err := exec.Command("chown", user, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	socket := filepath.Join(dir, "sock")
	cmd := exec.Command("runuser", "-u", user, "--", "env", "HOME="+dir, "XDG_RUNTIME_DIR="+dir, podman, "--cgroup-manager", "cgroupfs",
		"--root", dir+"/data", "--runroot", dir+"/run", "system", "service", "--time", "0", "unix://"+socket)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		cmd.Wait()
		endPause(t, filepath.Join(dir, "libpod/tmp/pause.pid"))
	})
	awaitEngine(t, "unix://"+socket)
	var u *prison.Unavailable
	err = docker.New("unix://" + socket).Probe(t.Context())
	if !errors.As(err, &u) || !strings.Contains(u.Reason, "Podman") || !strings.Contains(u.Reason, "without root") || len(u.Mend) == 0 {
		t.Errorf("an ordinary user's Podman: %v", err)
	}
}

// awaitEngine waits until an engine answers. The engine's socket exists before that.
func awaitEngine(t *testing.T, host string) {
	t.Helper()
	c, err := client.NewClientWithOpts(client.WithHost(host))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := c.Ping(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the engine does not answer: %v", err)
		}
	}
}

// endPause ends the process that keeps the namespaces of an ordinary user's Podman, and that outlives Podman.
func endPause(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Logf("Podman has left no process: %v", err)
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil && pid > 1 {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Errorf("%s: %q: %v", file, text, err)
	}
}
