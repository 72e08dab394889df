package docker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestStartCut cancels starts again and again. After the prison has been wiped, the engine must make no container.
func TestStartCut(t *testing.T) {
	onEachAsRoot(t, []string{"docker"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		s := prisontest.NewSpec(t, b, o)
		cut := 0
		for after := 5 * time.Millisecond; after < 400*time.Millisecond; after += 15 * time.Millisecond {
			prepare(t, b, s)
			ctx, cancel := context.WithTimeout(t.Context(), after)
			if _, err := b.Start(ctx, s); err != nil {
				cut++
			}
			cancel()
			if err := errors.Join(b.Stop(t.Context(), s), b.Wipe(t.Context(), s)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond) // time for an engine that still makes one
			if left, rest := labelled(t, s.ID); len(left)+rest > 0 {
				t.Fatalf("cut after %v: %d containers and %d others are left", after, len(left), rest)
			}
		}
		if cut == 0 {
			t.Error("nothing was cut short")
		}
	})
}
