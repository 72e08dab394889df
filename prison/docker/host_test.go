package docker_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
)

// TestUnusableSettings uses addresses and settings that lead to no engine. The error must be the same as without an
// engine, and say what to do.
func TestUnusableSettings(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{ broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, setting := range []struct{ name, value string }{
		{"DOCKER_HOST", "unix://"}, {"DOCKER_HOST", "npipe:////./pipe/x"}, {"DOCKER_HOST", "/no/scheme"}, {"DOCKER_HOST", ":"}, {"DOCKER_HOST", "ssh://elsewhere"},
		{"DOCKER_CONFIG", dir}, {"DOCKER_CONTEXT", "nowhere"},
	} {
		t.Run(setting.name+"="+filepath.Base(setting.value), func(t *testing.T) {
			for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"} {
				t.Setenv(name, "")
			}
			t.Setenv(setting.name, setting.value)
			var u *prison.Unavailable
			if err := docker.New("").Probe(t.Context()); !errors.As(err, &u) || len(u.Mend) == 0 {
				t.Errorf("%v", err)
			}
		})
	}
}
