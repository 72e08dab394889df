package confighook_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/confighook"
)

// TestParameters checks that git reads the value as settings that switch each hook off, whatever its name is, and that the settings before it
// stay.
func TestParameters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	names := []string{"plain", "a=b", "it's", "with space", "Upper", "x.y", "!", `back\slash`, `"`, "ü", "-", "a.event"}
	git := func(parameters string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + file, "GIT_CONFIG_PARAMETERS=" + parameters}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return string(out)
	}
	for _, name := range names {
		git("", "config", "--file", file, "hook."+name+".event", "reference-transaction")
		git("", "config", "--file", file, "--add", "hook."+name+".event", "post-index-change")
		git("", "config", "--file", file, "hook."+name+".command", "false")
	}
	records := strings.Split(git("", "config", "--list", "-z"), "\x00")
	value := confighook.Parameters("'user.name'='Ada'", records)
	if got := git(value, "config", "user.name"); got != "Ada\n" {
		t.Errorf("the setting before is %q", got)
	}
	off := strings.Split(git(value, "config", "-z", "--name-only", "--get-regexp", `^hook\..*\.enabled$`), "\x00")
	for _, name := range names {
		if !slices.Contains(off, "hook."+name+".enabled") || git(value, "config", "hook."+name+".enabled") != "false\n" {
			t.Errorf("%q is not switched off: %q", name, off)
		}
	}
	if len(off) != len(names)+1 {
		t.Errorf("%d settings for %d hooks", len(off)-1, len(names))
	}
	if got := confighook.Parameters("", []string{"user.name\nAda"}); got != "" {
		t.Errorf("without a hook: %q", got)
	}
}

func TestByName(t *testing.T) {
	t.Parallel()
	list := func() []string {
		return []string{"hook.own.command\nx", "hook.pre-commit.enabled\nfalse", "hook.jobs\n2"}
	}
	for version, want := range map[string]bool{"2.53.1": false, "2.54.0": true, "2.54.3.windows.1": true, "2.55.0": false, "3.0.0": false, "2.5.4": false, "": false} {
		if confighook.ByName(version, list) != want {
			t.Errorf("%q", version)
		}
	}
	for _, key := range []string{"hook.reference-transaction.command", "hook.post-index-change.parallel"} {
		shadows := func() []string { return append(list(), key+"\ntrue") }
		for version, want := range map[string]bool{"2.53.1": false, "2.54.0": true, "2.55.0": true, "2.55.1.windows.1": true, "3.0.0": true} {
			if confighook.ByName(version, shadows) != want {
				t.Errorf("%q with %s", version, key)
			}
		}
	}
}
