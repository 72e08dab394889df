package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
)

// openerEnv holds a spec and makes the test binary open that prison and wait. proberEnv makes it print the result
// of Probe as JSON.
const (
	openerEnv = "PRISONTEST_OPEN"
	proberEnv = "PRISONTEST_PROBE"
)

func TestMain(m *testing.M) {
	inside.Reexec()
	if spec := os.Getenv(openerEnv); spec != "" {
		openAndWait(spec)
	}
	if os.Getenv(proberEnv) != "" {
		var u *prison.Unavailable
		errors.As(docker.New("").Probe(context.Background()), &u)
		json.NewEncoder(os.Stdout).Encode(u)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func openAndWait(encoded string) {
	var s prison.Spec
	if err := json.Unmarshal([]byte(encoded), &s); err != nil {
		panic(err)
	}
	if _, err := docker.New("").Open(context.Background(), s); err != nil {
		panic(err)
	}
	fmt.Println("open")
	time.Sleep(time.Hour)
}

// patience limits each step that is usually quick. On a busy machine an engine takes many seconds for it.
const patience = 5 * time.Minute

func testImage() string { return docker.ImageForTests() }

func need(t testing.TB) *docker.Backend {
	t.Helper()
	b := docker.New("")
	err := b.Probe(t.Context())
	if err == nil {
		err = b.CheckImage(t.Context(), testImage())
	}
	prisontest.Need(t, "docker", err)
	return b
}

var phantoms atomic.Int32

// options returns another phantom at each call. No other process has its uid, since tests run at the same time, and some engines count
// processes by uid.
func options() prisontest.Options {
	uid := 1879100000 + 100*(os.Getpid()%60000) + int(phantoms.Add(1)%100)
	// root runs these parts already
	return prisontest.Options{UID: uid, GID: uid, Image: testImage(), Brief: os.Geteuid() != 0, Record: true}
}

func TestBackend(t *testing.T) {
	t.Parallel()
	prisontest.Run(t, need(t), options())
}

// engineAlone names tests of work that the engine does alone, in the same way for every user. The other tests also use files or processes
// of the host.
const engineAlone = "|^TestBackend$/^exhausting$|^TestBackend$/^working$/^(exec|terminal|watch)$|^TestImages$|^TestImageRemoved$|^TestUnusableSettings$|" +
	"^TestLateEngine$|^TestLatelyPaused$|^TestFailsOnce$|^TestLaunchHeldUp$|^TestNameTaken$|^TestAbandoned$|^TestVariables$|^TestOwnLimits$|^TestHomeOfEverybody$"

// TestOrdinaryUser runs these tests again as a member of the group that may use the engine.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	need(t)
	prisontest.AsOrdinaryUser(t, "docker", engineAlone, "docker")
}

// engine returns a connection to the same engine that does not use the code under test.
func engine(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func prepare(t testing.TB, b prison.Backend, s prison.Spec) {
	t.Helper()
	if err := b.Prepare(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// started starts a prison, after the function change has adapted its spec.
func started(t *testing.T, b *docker.Backend, change func(*prison.Spec)) (prison.Spec, prison.Prison) {
	t.Helper()
	s := prisontest.NewSpec(t, b, options())
	change(&s)
	prepare(t, b, s)
	return s, again(t, b, s)
}

func again(t *testing.T, b *docker.Backend, s prison.Spec) prison.Prison {
	t.Helper()
	if _, err := b.Start(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	p, err := b.Attach(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sh(t *testing.T, p prison.Prison, script string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	status, err := p.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return status, out.String()
}

// labelled returns the objects of a prison on the engine.
func labelled(t *testing.T, id string) (containers []container.Summary, rest int) {
	t.Helper()
	c, f := engine(t), filters.NewArgs(filters.Arg("label", "workspace.id="+id))
	containers, err := c.ContainerList(t.Context(), container.ListOptions{All: true, Filters: f})
	if err != nil {
		t.Fatal(err)
	}
	volumes, err := c.VolumeList(t.Context(), volume.ListOptions{Filters: f})
	if err != nil {
		t.Fatal(err)
	}
	networks, err := c.NetworkList(t.Context(), network.ListOptions{Filters: f})
	if err != nil {
		t.Fatal(err)
	}
	return containers, len(volumes.Volumes) + len(networks)
}

// TestNothingLeft checks the objects of a prison with an open network at each step from its start to its removal.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	b := need(t)
	s, p := started(t, b, func(s *prison.Spec) {
		s.Network, s.Name = prison.NetworkOpen, fmt.Sprintf(".devspace-%d-Ümläut repo", os.Getpid()) // this test runs as two users at once
	})
	sh(t, p, "echo kept > ~/file")
	first, rest := labelled(t, s.ID)
	if len(first) != 1 || rest != 1 {
		t.Fatalf("running: %d containers, %d volumes and networks", len(first), rest)
	}
	if got := first[0].Names[0]; got != fmt.Sprintf("/devspace-%d-ml-ut-repo", os.Getpid()) {
		t.Errorf("the container is named %q", got)
	}
	if err := b.Stop(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	again(t, b, s)
	if same, _ := labelled(t, s.ID); len(same) != 1 || same[0].ID != first[0].ID {
		t.Errorf("a restart made another container")
	}
	if err := b.Stop(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	// Other limits need a new container, which must have the same home.
	s.Limits.PIDs = 99
	p = again(t, b, s)
	if other, _ := labelled(t, s.ID); len(other) != 1 || other[0].ID == first[0].ID {
		t.Errorf("other limits made no other container")
	}
	if _, out := sh(t, p, "cat ~/file"); out != "kept\n" {
		t.Errorf("the home has %q", out)
	}
	if err := b.Stop(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := b.Wipe(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if left, rest := labelled(t, s.ID); len(left) != 0 || rest != 0 {
		t.Errorf("left: %d containers, %d volumes and networks", len(left), rest)
	}
}

// TestNameTaken gives two prisons the same name.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	b := need(t)
	name := func(s *prison.Spec) { s.Name = fmt.Sprintf(".work-1234-repo-%d", os.Getpid()) }
	one, _ := started(t, b, name)
	two, _ := started(t, b, name)
	for _, s := range []prison.Spec{one, two} {
		if c, _ := labelled(t, s.ID); len(c) != 1 || !strings.HasPrefix(c[0].Names[0], "/"+s.Name[1:]) {
			t.Errorf("containers: %+v", c)
		}
	}
}

// TestMemory uses more memory than the limit.
func TestMemory(t *testing.T) {
	t.Parallel()
	b := need(t)
	_, p := started(t, b, func(s *prison.Spec) { s.Limits.Memory = 64 << 20 })
	if status, out := sh(t, p, "head -c 200m /dev/zero | tail -c 150m | wc -c"); strings.TrimSpace(out) == fmt.Sprint(150<<20) {
		t.Errorf("150 MB were kept within 64: status %d, %q", status, out)
	}
	if status, out := sh(t, p, "echo alive"); status != 0 || out != "alive\n" {
		t.Errorf("afterwards: status %d, %q", status, out)
	}
}

// TestOpenEndsWithCaller kills the process that opened a prison.
func TestOpenEndsWithCaller(t *testing.T) {
	t.Parallel()
	b := need(t)
	s := prisontest.NewSpec(t, b, options())
	prepare(t, b, s)
	s.ReadOnly = true
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), openerEnv+"="+string(encoded))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if c, _ := labelled(t, s.ID); len(c) != 1 {
		t.Errorf("open: %+v", c)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		c, _ := labelled(t, s.ID)
		if len(c) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it outlives its caller: %+v", c)
		}
	}
}

// TestStranger probes as a user who may not use the engine.
func TestStranger(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	need(t)
	cmd := exec.Command("runuser", "-u", "nobody", "--", prisontest.CopyOfTest(t))
	cmd.Dir, cmd.Env = "/", append(os.Environ(), proberEnv+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var u *prison.Unavailable
	if err := json.Unmarshal(out, &u); err != nil || u == nil || u.Backend != "docker" ||
		len(u.Mend) != 1 || !strings.HasPrefix(u.Mend[0], "sudo usermod -aG docker") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestNoEngine(t *testing.T) {
	t.Parallel()
	for host, mend := range map[string]string{
		"unix://" + t.TempDir() + "/none.sock": "sudo apt-get install docker.io", // as if there were no socket
		"tcp://127.0.0.1:1":                    "sudo systemctl start docker",
		"tcp://192.0.2.1:2375":                 "export DOCKER_HOST=unix:///var/run/docker.sock",
		"ssh://somewhere":                      "export DOCKER_HOST=unix:///var/run/docker.sock",
	} {
		var u *prison.Unavailable
		if err := docker.New(host).Probe(t.Context()); !errors.As(err, &u) || len(u.Mend) == 0 || u.Mend[0] != mend {
			t.Errorf("%s: %v, %+v", host, err, u)
		}
	}
}

// TestExamineAgrees compares the weaknesses that Examine reports with those of a prison that is started afterwards.
func TestExamineAgrees(t *testing.T) {
	t.Parallel()
	b := need(t)
	findings, err := b.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	foretold := []string{}
	for _, f := range findings {
		if f.Name == "" || f.Value == "" {
			t.Errorf("%+v", f)
		}
		if f.Lack != "" {
			foretold = append(foretold, f.Lack)
		}
	}
	s := prisontest.NewSpec(t, b, options())
	prepare(t, b, s)
	i, err := b.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	given := []string{}
	for _, w := range i.Weaker {
		given = append(given, w.Text)
	}
	if !slices.Equal(given, foretold) {
		t.Errorf("foretold %q, given %q", foretold, given)
	}
}
