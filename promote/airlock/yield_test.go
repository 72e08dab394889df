package airlock

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestWanted calls wanted many times, while other goroutines start processes, and then while another caller waits for the lock.
func TestWanted(t *testing.T) {
	t.Parallel()
	s := Open(&gitops.Repository{CommonDir: t.TempDir()})
	gitopstest.Check(t, os.Mkdir(s.root(), 0o700))
	// With its first process, package os also makes one that tells it whether there are pidfds, without the lock of forks. The program has started
	// git long before.
	gitopstest.Check(t, exec.CommandContext(t.Context(), "true").Run())
	for range 2 {
		go func() {
			for t.Context().Err() == nil {
				_ = exec.CommandContext(t.Context(), "true").Run()
			}
		}()
	}
	for begun, asked := time.Now(), 0; asked < 50_000 && time.Since(begun) < 2*time.Second; asked++ {
		if s.wanted() {
			t.Fatalf("nobody waits, and the answer %d is that somebody does", asked)
		}
	}
	waits := s.want()
	if !s.wanted() {
		t.Error("the answer is no, although somebody waits")
	}
	waits.Close()
}
