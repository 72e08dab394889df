package docker_test

import (
	"errors"
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
		if err := b.Prepare(t.Context(), s); err != nil {
			t.Fatal(err)
		}
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
