package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestWriteFile replaces a file, also beside what a writer that was killed has left, and does not follow a link with the name of the new file.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	for _, left := range []string{"", "longer than the new content"} {
		if left != "" {
			gitopstest.Check(t, os.WriteFile(name+".new", []byte(left), 0o600))
		}
		gitopstest.Check(t, durable.WriteFile(name, []byte("new"), 0o640))
		content, err := os.ReadFile(name)
		gitopstest.Check(t, err)
		if info, err := os.Stat(name); err != nil || string(content) != "new" || info.Mode() != 0o640 {
			t.Errorf("%q, %v, %v", content, info, err)
		}
	}
	gitopstest.Check(t, os.WriteFile(other, []byte("other"), 0o600))
	gitopstest.Check(t, os.Symlink("other", name+".new"))
	err := durable.WriteFile(name, []byte("again"), 0o600)
	for file, want := range map[string]string{name: "new", other: "other"} {
		if content, readErr := os.ReadFile(file); err == nil || readErr != nil || string(content) != want {
			t.Errorf("%s has %q, want %q: %v", file, content, want, err)
		}
	}
}
