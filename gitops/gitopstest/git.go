// Package gitopstest has what the tests of gitops and its rooms share: repositories to work on, and git as a user runs it.
package gitopstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Main runs the tests of a package. It gives git a home and a configuration of their own, and puts their
// folders into memory where there is room.
func Main(m *testing.M) {
	if os.Getenv("TMPDIR") == "" && roomy(memory) {
		_ = os.Setenv("TMPDIR", memory)
	}
	home, err := os.MkdirTemp("", "gitops-home-")
	if err != nil {
		panic(err)
	}
	config := filepath.Join(home, "gitconfig")
	// Housekeeping in the background would race the removal of a test's folder.
	if err := os.WriteFile(config, []byte("[gc]\n\tauto = 0\n"), 0o600); err != nil {
		panic(err)
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "GIT_") {
			_ = os.Unsetenv(name)
		}
	}
	for name, value := range map[string]string{
		"HOME": home, "GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org",
		"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org",
	} {
		_ = os.Setenv(name, value)
	}
	m.Run() // the process ends with its result
	_ = os.RemoveAll(home)
}

// memory is where Linux keeps files in memory: the tests make some ten thousand.
const memory = "/dev/shm"

// roomy reports whether a folder has room for the tests and lets programs be run, as hooks and filters are.
func roomy(dir string) bool {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < 1<<30 {
		return false
	}
	probe, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(probe)
	script := filepath.Join(probe, "true")
	return os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700) == nil && exec.CommandContext(context.Background(), script).Run() == nil
}

// Command runs git plainly, as the user would, and returns what it prints.
func Command(t testing.TB, dir string, env []string, args ...string) string {
	t.Helper()
	out, err := TryCommand(dir, env, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

// TryCommand is Command with the error that git ended with.
func TryCommand(dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// Input is Command with a standard input; what git prints as an error is returned, too.
func Input(t testing.TB, dir string, env []string, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, append(os.Environ(), env...), strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// ExitStatus runs a command and returns its exit status. A status other than 0 is not an error.
func ExitStatus(cmd *exec.Cmd) (int, error) {
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// Check ends a test with an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
