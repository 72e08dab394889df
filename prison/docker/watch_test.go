package docker_test

import (
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestWatchEnds kills containers while they are watched. Under some runtimes the engine does not notice or report that the container has
// ended.
func TestWatchEnds(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "runsc"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		s := prisontest.NewSpec(t, b, o)
		prepare(t, b, s)
		changes, err := again(t, b, s).Watch(t.Context(), []string{prison.Workspace})
		if err != nil {
			t.Fatal(err)
		}
		boxes, _ := labelled(t, s.ID)
		if err := engine(t).ContainerKill(t.Context(), boxes[0].ID, "KILL"); err != nil {
			t.Fatal(err)
		}
		ended := time.After(patience)
		for open := true; open; {
			select {
			case _, open = <-changes:
			case <-ended:
				t.Fatal("the watch does not end")
			}
		}
	})
}
