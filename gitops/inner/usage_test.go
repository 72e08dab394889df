package inner

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// hereIn runs the commands for a workspace here, as the user who runs the tests.
func hereIn(dir string, env ...string) Workspace {
	return Workspace{Dir: dir, Run: func(ctx context.Context, p Process) (int, error) {
		cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append(append(os.Environ(), p.Env...), env...), p.Stdin, p.Stdout, p.Stderr
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			return 0, err
		}
		return cmd.ProcessState.ExitCode(), nil
	}}
}

// lying puts a du on the PATH that prints error messages, as du does for unreadable folders.
func lying(t *testing.T, complaint string) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '%s\\n' \"" + complaint + "\" >&2\nprintf '40\\t.\\n'\nexit 1\n"
	gitopstest.Check(t, os.WriteFile(filepath.Join(dir, "du"), []byte(script), 0o700))
	return "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")
}

func TestUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gitopstest.Check(t, os.WriteFile(filepath.Join(dir, "f"), []byte(strings.Repeat("x", 100_000)), 0o600))
	for _, c := range []struct {
		name, complaint string
		whole           bool
	}{
		{"all of it", "", true},
		{"a file that vanished", "du: cannot access './a': No such file or directory", true},
		{"a folder that is closed", "du: cannot read directory './c': Permission denied", false},
		{"one that is called so", "du: cannot read directory './c: No such file or directory': Permission denied", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var env []string
			if c.complaint != "" {
				env = []string{lying(t, c.complaint)}
			}
			u, err := hereIn(dir, env...).Usage(t.Context())
			gitopstest.Check(t, err)
			if u.Whole != c.whole || u.Inodes != 2 || u.Bytes < 40<<10 || u.Bytes > 1<<20 || u.Took <= 0 {
				t.Errorf("%+v", u)
			}
		})
	}
	if u, err := hereIn(filepath.Join(dir, "nothing")).Usage(t.Context()); err == nil || u.Whole {
		t.Errorf("of nothing: %+v, %v", u, err)
	}
}
