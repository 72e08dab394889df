package docker_test

import (
	"testing"

	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestReach tries to reach addresses that an open network must refuse.
func TestReach(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "runsc", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) { prisontest.Reach(t, b, o) })
}
