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
		"~/app/tools/hooks":            "tools/hooks",
		":(optional)~/app/tools/hooks": "tools/hooks",
		":(optional)tools/hooks":       "tools/hooks",
		home + "/app/tools/hooks":      "tools/hooks",
		"~/other/hooks":                "",
		filepath.Join(dir, "disk"):     "",
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

// TestFilesAtTheTop has settings whose value names a file without a slash.
func TestFilesAtTheTop(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	gitopstest.Check(t, err)
	for _, c := range []struct{ key, value, want string }{
		{"gc.recentobjectshook", "sh keep.sh", "keep.sh sh"},
		{"hook.lint.command", "sh lint.sh", "lint.sh sh"},
		{"http.proxysslcainfo", "ca.pem", "ca.pem"},
		{"http.https://host/.sslcainfo", "ca.pem", "ca.pem"},
		{"new.key", "ca.pem", ""},
	} {
		if got := pathsOf(readPrograms(gitops.Config{c.key: c.value}, top)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.key, c.value, got, c.want)
		}
	}
}

// TestAddressesThatRun has settings whose address is a command line for git-remote-ext(1).
func TestAddressesThatRun(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	gitopstest.Check(t, err)
	for _, c := range []struct{ key, value, want string }{
		{"remote.x.url", "ext::./tools/x %S repo", "tools/x"},
		{"remote.x.pushurl", "ext::sh -c ./tools/x% %S", "tools/x"},
		{"branch.main.remote", "ext::tools/x", "tools/x"},
		{"submodule.m.url", "ext::tools/x", "tools/x"},
		{"url.ext::./tools/x %S .insteadof", "work:", "tools/x"},
		{"url.ext::./tools/x.sh.pushinsteadof", "work:", "tools/x.sh"},
		{"remote.x.url", "ext::" + top + "/tools/x", "tools/x"},
		{"remote.x.url", "ssh://host/tools/x", ""},
		{"url.https://host/tools/.insteadof", "ext::./tools/x", ""},
	} {
		if got := pathsOf(readPrograms(gitops.Config{c.key: c.value}, top)); !strings.HasSuffix(" "+got, " "+c.want) || c.want == "" && got != "" {
			t.Errorf("%s %s: %q, want %q", c.key, c.value, got, c.want)
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
