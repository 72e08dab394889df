package docker_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestOpenTogether starts and stops prisons with an open network at the same time. They share the network that
// leads nowhere, which must be removed with the last of them and created again with the next.
func TestOpenTogether(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		var all sync.WaitGroup
		for i := range 4 {
			o := o
			o.Dir = t.TempDir()
			o.UID, o.GID = o.UID+10*i, o.GID+10*i
			s := prisontest.NewSpec(t, b, o)
			s.Network = prison.NetworkOpen
			all.Go(func() {
				if err := b.Prepare(t.Context(), s); err != nil {
					t.Error(err)
					return
				}
				for round := range 4 {
					if _, err := b.Start(t.Context(), s); err != nil {
						t.Error(fmt.Errorf("start %d: %w", round, err))
					}
					if err := b.Stop(t.Context(), s); err != nil {
						t.Error(fmt.Errorf("stop %d: %w", round, err))
					}
				}
				if err := errors.Join(b.Wipe(t.Context(), s)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}
