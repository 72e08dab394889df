package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersion builds the program as a newcomer does: in a clone, where Go records the commit, and, unless tests must be short, in sources
// without a repository.
func TestVersion(t *testing.T) {
	t.Parallel()
	clone := filepath.Join(t.TempDir(), "git-airlock")
	copySources(t, clone)
	git := func(args ...string) string {
		return strings.TrimSpace(output(t, "git", append([]string{"-C", clone}, args...)...))
	}
	git("init", "-q")
	git("add", ".")
	git("-c", "user.name=U", "-c", "user.email=u@host", "commit", "-q", "--no-verify", "--no-gpg-sign", "-m", "Sources")
	commit := git("rev-parse", "HEAD")
	program := filepath.Join(t.TempDir(), "git-airlock")
	built := func() string {
		build := exec.Command("go", "build", "-trimpath", "-tags", "urfave_cli_no_docs", "-o", program, "./cmd/git-airlock")
		build.Dir = clone
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=auto")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		return output(t, program, "--version")
	}
	if got := built(); !strings.Contains(got, commit[:12]+" (") {
		t.Errorf("in a clone of %s: %s", commit, got)
	}
	if testing.Short() { // linking takes seconds
		return
	}
	if err := os.RemoveAll(filepath.Join(clone, ".git")); err != nil {
		t.Fatal(err)
	}
	if got := built(); !strings.Contains(got, "unknown (") {
		t.Errorf("in sources without a repository: %s", got)
	}
}
