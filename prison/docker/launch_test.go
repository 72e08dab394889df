package docker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// TestLaunchHeldUp puts a pipe in the place of the file for a command's status. Launch must fail, and not block for ever.
func TestLaunchHeldUp(t *testing.T) {
	t.Parallel()
	b := need(t)
	_, p := started(t, b, func(*prison.Spec) {})
	if status, out := sh(t, p, "rm -f /home/.run/status; mkfifo /home/.run/status"); status != 0 {
		t.Fatal(out)
	}
	begun := time.Now()
	err := p.Launch(t.Context(), prison.Process{Argv: []string{"true"}})
	if took := time.Since(begun); err == nil || !strings.Contains(err.Error(), "no answer") || took > patience {
		t.Errorf("after %v: %v", took, err)
	}
	if status, out := sh(t, p, "rm /home/.run/status; for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$p; echo; done | grep -c '[_]mode='"); out != "0\n" {
		t.Errorf("left: status %d, %s", status, out)
	}
	if err := p.Launch(t.Context(), prison.Process{Argv: []string{"true"}}); err != nil {
		t.Errorf("without the pipe: %v", err)
	}
}
