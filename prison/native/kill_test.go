//go:build linux

package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestKilledAnyTime kills the keeper, or stops it, at arbitrary moments of its start.
func TestKilledAnyTime(t *testing.T) {
	b, s := prepared(t)
	started := 0
	for i := range 30 {
		done := make(chan error, 1)
		go func() {
			_, err := b.Start(t.Context(), s)
			done <- err
		}()
		time.Sleep(time.Duration(rand.IntN(25)) * time.Millisecond)
		var k keptState
		if rand.IntN(2) == 0 {
			if c, err := os.ReadFile(filepath.Join(s.Dir, "state.json")); err == nil && json.Unmarshal(c, &k) == nil && k.Keeper.PID > 0 {
				unix.Kill(k.Keeper.PID, unix.SIGKILL)
			}
		} else if rand.IntN(2) == 0 {
			if err := b.Stop(t.Context(), s); err != nil {
				t.Errorf("%d stop: %v", i, err)
			}
		}
		if err := <-done; err == nil {
			started++
		}
		if err := b.Stop(t.Context(), s); err != nil {
			t.Errorf("%d stop: %v", i, err)
		}
		if n := gidProcesses(s.GID); n > 0 {
			t.Errorf("%d: %d processes left", i, n)
		}
		for _, g := range k.Cgroups {
			if _, err := os.Stat(g); err == nil {
				t.Errorf("%d: %s left", i, g)
			}
		}
	}
	t.Logf("%d of 30 had started", started)
}

// TestStartCancelled cancels a start at arbitrary moments.
func TestStartCancelled(t *testing.T) {
	b, s := prepared(t)
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(40))*time.Millisecond)
		_, err := b.Start(ctx, s)
		cancel()
		if err == nil {
			err = b.Stop(t.Context(), s)
		} else if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
		for begun := time.Now(); gidProcesses(s.GID) > 0; time.Sleep(time.Millisecond) {
			if time.Since(begun) > patience {
				t.Fatalf("%d: processes left", i)
			}
		}
	}
}
