package docker_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
)

// TestRestarted restarts the container through the engine alone. The other start lacks limits that were set inside, so it must not count as
// a running prison.
func TestRestarted(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "runsc", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		s := prisontest.NewSpec(t, b, o)
		s.Limits.PIDs = 60
		prepare(t, b, s)
		again(t, b, s).Close()
		c, id := onEngineOf(t, b, s)
		if err := c.ContainerRestart(t.Context(), id, container.StopOptions{}); err != nil {
			t.Fatal(err)
		}
		if p, err := b.Attach(t.Context(), s); !errors.Is(err, prison.ErrNotRunning) {
			t.Fatalf("after a restart by somebody else: %v, %v", p, err)
		}
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		p := again(t, b, s)
		defer p.Close()
		if o.Runtime != "runsc" { // the other runtimes set the limit at each start
			return
		}
		if _, limit := sh(t, p, "cat /sys/fs/cgroup/pids/pids.max"); strings.TrimSpace(limit) != "60" {
			t.Errorf("the limit of processes is %q", limit)
		}
	})
}

// onEngineOf returns a connection to the engine of a prison that does not use the code under test, and the id of the prison's container.
func onEngineOf(t *testing.T, b *docker.Backend, s prison.Spec) (c *client.Client, id string) {
	t.Helper()
	host, _, err := b.Host(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = client.NewClientWithOpts(client.WithHost(host), client.WithAPIVersionNegotiation()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	list, err := c.ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(
		filters.Arg("label", "workspace.id="+s.ID), filters.Arg("label", "workspace.role=prison"))})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d containers, %v", len(list), err)
	}
	return c, list[0].ID
}

// TestMovedEngine takes away the address of a prison's engine. The engine for new prisons is used if it has the prison, and no other one is.
func TestMovedEngine(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		s := prisontest.NewSpec(t, b, o)
		prepare(t, b, s)
		again(t, b, s).Close()
		file := filepath.Join(s.Dir, "container.json")
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		change := func(to map[string]string) {
			t.Helper()
			content, err := os.ReadFile(file)
			fields := map[string]any{}
			if err = errors.Join(err, json.Unmarshal(content, &fields)); err != nil {
				t.Fatal(err)
			}
			for name, value := range to {
				fields[name] = value
			}
			content, err = json.Marshal(fields)
			if err = errors.Join(err, os.WriteFile(file, content, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		its, _, err := b.Host(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		gone := "unix://" + filepath.Join(s.Dir, "gone.sock")
		change(map[string]string{"host": gone})
		p, err := b.Attach(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
		if err := b.ProbeOf(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if now, _, err := b.Host(s.Dir); err != nil || now != its {
			t.Errorf("the stored address is %s, %v", now, err)
		}
		defer os.WriteFile(file, whole, 0o600) // if this fails, the prison stays, and the test fails, too
		change(map[string]string{"host": gone + "2", "key": "0123456789abcdef", "product": "Podman"})
		var u *prison.Unavailable
		if err := b.Stop(t.Context(), s); !errors.As(err, &u) || !slices.Contains(u.Mend, "sudo systemctl start podman.socket") {
			t.Errorf("an engine without the prison: %v, %+v", err, u)
		}
	})
}
