package docker_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestExecBesideStop executes commands while the prison is being stopped. Each command must succeed, or fail because the prison does not
// run.
func TestExecBesideStop(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		s := prisontest.NewSpec(t, b, o)
		prepare(t, b, s)
		for round := range 4 {
			p := again(t, b, s)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for {
						status, err := p.Exec(t.Context(), prison.Process{Argv: []string{"true"}})
						if errors.Is(err, prison.ErrNotRunning) {
							return
						}
						if status != 0 || err != nil {
							t.Errorf("round %d: status %d, %v", round, status, err)
							return
						}
					}
				})
			}
			time.Sleep(time.Duration(200+50*round) * time.Millisecond)
			if err := b.Stop(t.Context(), s); err != nil {
				t.Error(err)
			}
			all.Wait()
		}
	})
}
