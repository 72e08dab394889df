package gitops_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestSharing compares the permissions of a shared repository with those of an object that git writes under a closed umask.
func TestSharing(t *testing.T) {
	w := gitopstest.New(t)
	for n, value := range []string{"umask", "false", "0", "group", "true", "yes", "1", "all", "world", "everybody", "2", "0640", "0644", "0600", "0660"} {
		w.Run("config", "core.sharedRepository", value)
		file := filepath.Join(t.TempDir(), "content")
		gitopstest.Check(t, os.WriteFile(file, []byte(strconv.Itoa(n)), 0o600))
		script := `umask 077; id=$(git -C "$1" hash-object -w "$2"); stat -c %a "$1/.git/objects/$(echo "$id" | sed 's,..,&/,')"`
		out, err := exec.Command("sh", "-c", script, "sh", w.Top, file).Output()
		gitopstest.Check(t, err)
		want, err := strconv.ParseUint(strings.TrimSpace(string(out)), 8, 32)
		gitopstest.Check(t, err)
		s, err := w.Sharing(t.Context())
		gitopstest.Check(t, err)
		if got := s.Mode(0o400); got != fs.FileMode(want) {
			t.Errorf("%s: %o, and %o for git", value, got, want)
		}
	}
}
