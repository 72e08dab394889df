package gitops_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestSharing compares the permissions of a shared repository with those of an object and of an index that git writes under a closed
// umask, wherever the setting is.
func TestSharing(t *testing.T) {
	const key = "core.sharedRepository"
	for place, set := range map[string]func(t *testing.T, w *gitopstest.Repo, value string){
		"repository": func(_ *testing.T, w *gitopstest.Repo, value string) { w.Run("config", key, value) },
		"worktree":   func(_ *testing.T, w *gitopstest.Repo, value string) { w.Run("config", "--worktree", key, value) },
		"user":       func(_ *testing.T, w *gitopstest.Repo, value string) { w.Run("config", "--global", key, value) },
		"included": func(t *testing.T, w *gitopstest.Repo, value string) {
			w.Run("config", "--file", filepath.Join(w.GitDir, "more"), key, value)
			w.Run("config", "include.path", "more")
		},
		"command": func(t *testing.T, _ *gitopstest.Repo, value string) {
			t.Setenv("GIT_CONFIG_PARAMETERS", fmt.Sprintf("'%s'='%s'", key, value))
		},
	} {
		t.Run(place, func(t *testing.T) {
			t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(t.TempDir(), "config"))
			w := gitopstest.New(t)
			w.Run("config", "extensions.worktreeConfig", "true")
			for n, value := range []string{"umask", "false", "0", "group", "true", "yes", "1", "all", "world", "everybody", "2", "0640", "0644", "0600", "0660"} {
				set(t, w, value)
				file := filepath.Join(t.TempDir(), "content")
				gitopstest.Check(t, os.WriteFile(file, []byte(strconv.Itoa(n)), 0o600))
				script := `umask 077; cd "$1"; rm -f .git/index; git read-tree --empty; id=$(git hash-object -w "$2"); stat -c %a .git/index ".git/objects/$(echo "$id" | sed 's,..,&/,')"`
				want, err := exec.Command("sh", "-euc", script, "sh", w.Top, file).Output()
				gitopstest.Check(t, err)
				config, err := w.Config(t.Context())
				gitopstest.Check(t, err)
				s := config.Sharing()
				if got := fmt.Sprintf("%o\n%o\n", s.Mode(0o600), s.Mode(0o400)); got != string(want) {
					t.Errorf("%s: %q, and %q for git", value, got, want)
				}
			}
		})
	}
}
