//go:build linux

package native_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// installedEnv makes this test binary run as a program that is installed in a shared folder.
const installedEnv = "PRISONTEST_INSTALLED"

// TestProgramHidden installs the test binary in its own mount namespace, as this project's program and under another name. Neither may be
// visible inside.
func TestProgramHidden(t *testing.T) {
	if os.Getenv(installedEnv) != "" {
		lookForProgram(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can pretend to be installed")
	}
	needNative(t)
	program := prisontest.CopyOfTest(t)
	bin := filepath.Join(filepath.Dir(program), "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"git-airlock", "git-airlock-extra", "innocent"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho "+name+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(program, filepath.Join(bin, "unsuspected")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-m", "sh", "-c",
		`mount --bind "$0" /usr/local/bin && exec /usr/local/bin/unsuspected -test.run='^TestProgramHidden$'`, bin)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), installedEnv+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func lookForProgram(t *testing.T) {
	b, s := prepared(t)
	i := start(t, b, s)
	if len(i.Weaker) > 0 {
		t.Logf("weaker: %q", i.Weaker)
	}
	if got := output(t, b, s, "ls /usr/local/bin; innocent"); got != "innocent\ninnocent" {
		t.Errorf("in the folder there is %q", got)
	}
	got := output(t, b, s, "cat /proc/self/mountinfo; find / -xdev 2>/dev/null; ls -R /run /tmp /.l* 2>/dev/null")
	for line := range strings.Lines(got) {
		if strings.Contains(line, "airlock") || strings.Contains(line, "unsuspected") {
			t.Errorf("inside one can read %q", line)
		}
	}
}
