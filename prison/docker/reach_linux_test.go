package docker_test

import (
	"testing"

	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestReach looks for ways around what an open network is closed to.
func TestReach(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "runsc", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) { prisontest.Reach(t, b, o) })
}
