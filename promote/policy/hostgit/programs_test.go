package hostgit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestProgramsBelowTheHome checks that programs count as the work tree's by any path that leads to them, for example
// from a home that is a link.
func TestProgramsBelowTheHome(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	gitopstest.Check(t, err)
	gitopstest.Check(t, os.MkdirAll(filepath.Join(dir, "disk", "app"), 0o755))
	home := filepath.Join(dir, "home")
	gitopstest.Check(t, os.Symlink("disk", home))
	t.Setenv("HOME", home)
	for value, want := range map[string]string{
		"~/app/tools/hooks":        "tools/hooks",
		home + "/app/tools/hooks":  "tools/hooks",
		"~/other/hooks":            "",
		filepath.Join(dir, "disk"): "",
	} {
		p := readPrograms(gitops.Config{"core.hookspath": value}, filepath.Join(dir, "disk", "app"))
		if got := pathsOf(p); got != want {
			t.Errorf("core.hooksPath %s: %q, want %q", value, got, want)
		}
	}
	for _, value := range []string{"!$HOME/app/tools/x", "!\"${HOME}/app/tools/x\"", "!~/app/tools/x"} {
		p := readPrograms(gitops.Config{"alias.x": value}, filepath.Join(dir, "disk", "app"))
		if got := pathsOf(p); got != "tools/x" {
			t.Errorf("alias.x %s: %q, want tools/x", value, got)
		}
	}
}

func pathsOf(p Programs) string {
	var paths []string
	for _, f := range p.files {
		paths = append(paths, f.path)
	}
	return strings.Join(paths, " ")
}
