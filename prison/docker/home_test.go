package docker_test

import (
	"testing"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
)

// TestHomeRemoved takes a stopped prison's container and volume away, as cleaning up an engine does: the next start makes both
// anew. The accounts are nobody's to change inside.
func TestHomeRemoved(t *testing.T) {
	b := need(t)
	s, p := started(t, b, func(*prison.Spec) {})
	e := engine(t)
	for round := range 2 {
		status, out := sh(t, p, `exec 2>/dev/null
			id -un && touch ~/x && ! echo y >>/etc/passwd && ! touch /home/.accounts/x && ! rm /home/.accounts/passwd && ls -A /home`)
		if want := s.User + "\n.accounts\n.run\n" + s.User + "\n"; status != 0 || out != want {
			t.Errorf("round %d: status %d, %q, want %q", round, status, out, want)
		}
		if round > 0 {
			return
		}
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		containers, _ := labelled(t, s.ID)
		if len(containers) != 1 {
			t.Fatalf("containers: %+v", containers)
		}
		if err := e.ContainerRemove(t.Context(), containers[0].ID, container.RemoveOptions{}); err != nil {
			t.Fatal(err)
		}
		left, err := e.VolumeList(t.Context(), volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "workspace.id="+s.ID))})
		if err != nil || len(left.Volumes) != 1 {
			t.Fatalf("volumes: %+v, %v", left.Volumes, err)
		}
		if err := e.VolumeRemove(t.Context(), left.Volumes[0].Name, false); err != nil {
			t.Fatal(err)
		}
		p = again(t, b, s)
	}
}
