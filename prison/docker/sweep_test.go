package docker

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	volumes "github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
)

// TestAbandoned removes a container that the engine created although the start was killed. The volumes that were created with it must be
// removed, but not an existing volume with an agent's files.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	c, err := dialect.Connect(cmp.Or(os.Getenv("DOCKER_HOST"), client.DefaultDockerHost))
	if err == nil {
		err = c.Awake(t.Context())
	}
	prisontest.Need(t, "docker", err)
	e := &engine{c}
	i, err := e.image(t.Context(), ImageForTests())
	prisontest.Need(t, "docker", err)
	r := newState(e.Host)
	labels := func() map[string]string { return map[string]string{labelKey: r.Key, labelRole: "test"} }
	if _, err := e.VolumeCreate(t.Context(), volumes.CreateOptions{Name: r.homeVolume(), Labels: labels()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.VolumeRemove(context.Background(), r.homeVolume(), true) })
	p := plan{name: "abandoned-" + r.Key, config: container.Config{Image: i.ID, Cmd: []string{"true"}, Labels: labels()}, host: container.HostConfig{Mounts: []mount.Mount{
		volume(r.homeVolume(), "/home", labels()), volume(r.etcVolume(), "/etc", labels()),
	}}}
	if _, err := e.create(t.Context(), r, p); err != nil {
		t.Fatal(err)
	}
	of := filters.NewArgs(filters.Arg("label", labelKey+"="+r.Key))
	list, err := e.ContainerList(t.Context(), container.ListOptions{All: true, Filters: of})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d containers, %v", len(list), err)
	}
	if err := e.abandon(t.Context(), list[0]); err != nil {
		t.Fatal(err)
	}
	left, err := e.VolumeList(t.Context(), volumes.ListOptions{Filters: of})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range left.Volumes {
		names = append(names, v.Name)
	}
	if !slices.Equal(names, []string{r.homeVolume()}) {
		t.Errorf("left: %q", names)
	}
	if list, err = e.ContainerList(t.Context(), container.ListOptions{All: true, Filters: of}); err != nil || len(list) != 0 {
		t.Errorf("%d containers are left, %v", len(list), err)
	}
}

// TestRemoveUnrecorded removes the objects of an airlock without a state: without an engine, and with an engine that accepts connections and never
// answers. Only the second engine can have such objects.
func TestRemoveUnrecorded(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "engine.sock")
	remove := func() error { return New("unix://"+socket).RemoveUnrecorded(t.Context(), "0123", "/nowhere") }
	if err := remove(); err != nil {
		t.Errorf("no engine: %v", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if u, ok := errors.AsType[*prison.Unavailable](remove()); !ok || !strings.HasSuffix(u.Reason, " does not answer") {
		t.Errorf("an engine that does not answer: %v", u)
	}
}

// TestLeftOver checks which containers are removed: those of a killed command that do not run, but never a container of another program,
// with any labels.
func TestLeftOver(t *testing.T) {
	r := newState("")
	of := func(role string) map[string]string { return r.labels(prison.Spec{ID: "id"}, role) }
	old := time.Now().Add(-2 * dialect.SweepAge)
	for what, c := range map[string]struct {
		labels  map[string]string
		state   container.ContainerState
		created time.Time
		want    bool
	}{
		"a helper":               {of(roleHelper), container.StateExited, old, true},
		"one that never ran":     {of(roleHelper), container.StateCreated, old, true},
		"one that was just made": {of(roleHelper), container.StateCreated, time.Now(), false},
		"a prison being made":    {of(rolePrison), container.StateCreated, old, true},
		"a stopped prison":       {of(rolePrison), container.StateExited, old, false},
		"somebody's role":        {map[string]string{labelRole: "helper"}, container.StateExited, old, false},
		"somebody's key":         {map[string]string{labelRole: "helper", labelID: "1", labelKey: "editor"}, container.StateExited, old, false},
		"no key":                 {map[string]string{labelRole: "helper", labelID: "1", labelKey: ""}, container.StateExited, old, false},
	} {
		if got := leftOver(container.Summary{Labels: c.labels, State: c.state, Created: c.created.Unix()}); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// ImageForTests returns an image with git and a shell that tests may use.
func ImageForTests() string { return cmp.Or(os.Getenv("AIRLOCK_TEST_IMAGE"), "airlock-test-base") }
