package recipe_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestFragments checks the shell commands of the generated steps with a shell's parser and with shellcheck. Steps
// that fetch something cannot be run everywhere.
func TestFragments(t *testing.T) {
	files, err := filepath.Glob("testdata/*.Dockerfile")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	var all strings.Builder
	all.WriteString("#!/bin/sh -e\n")
	count := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, fragment := range fragments(string(content)) {
			count++
			if out, err := exec.Command("sh", "-n", "-c", fragment).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s in\n%s", file, err, out, fragment)
			}
			all.WriteString("( " + fragment + "\n)\n")
		}
	}
	if count < 3*len(files) {
		t.Fatalf("only %d fragments in %d files", count, len(files))
	}
	if _, err := exec.LookPath("shellcheck"); err != nil {
		prisontest.Need(t, "shells", fmt.Errorf("%w (sudo apt-get install shellcheck)", err))
	}
	script := filepath.Join(t.TempDir(), "fragments")
	if err := os.WriteFile(script, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("shellcheck", "--shell=dash", "--severity=warning", script).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// fragments returns the commands of a Dockerfile's RUN steps, as the shell gets them.
func fragments(dockerfile string) (all []string) {
	for line := range strings.Lines(strings.ReplaceAll(dockerfile, "\\\n", "")) {
		if command, ok := strings.CutPrefix(line, "RUN "); ok {
			all = append(all, strings.TrimSpace(command))
		}
	}
	return all
}
