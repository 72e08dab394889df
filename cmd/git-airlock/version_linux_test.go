package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersion builds the program as a newcomer does: in a clone, where Go records the commit, and in sources without a repository.
func TestVersion(t *testing.T) {
	if out, err := exec.Command("git", "rev-parse", "--verify", "HEAD").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: these sources are not in a repository: %s", out)
	}
	clone := filepath.Join(t.TempDir(), "git-airlock")
	git := func(args ...string) string {
		return strings.TrimSpace(output(t, "git", args...))
	}
	git("clone", "-q", "--depth=1", "--no-local", git("rev-parse", "--show-toplevel"), clone)
	commit := git("-C", clone, "rev-parse", "HEAD")
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
	if err := os.RemoveAll(filepath.Join(clone, ".git")); err != nil {
		t.Fatal(err)
	}
	if got := built(); !strings.Contains(got, "unknown (") {
		t.Errorf("in sources without a repository: %s", got)
	}
}
