//go:build linux

package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// starterEnv, with a spec, makes the test binary start that prison and exit.
const starterEnv = "PRISONTEST_START"

// openerEnv, with a spec, makes it open that prison and wait inside.
const openerEnv = "PRISONTEST_OPEN"

func TestMain(m *testing.M) {
	native.Reexec()
	if spec := os.Getenv(starterEnv); spec != "" {
		os.Exit(startAndLeave(spec))
	}
	if spec := os.Getenv(openerEnv); spec != "" {
		os.Exit(openAndWait(spec))
	}
	if os.Getenv(attemptEnv) != "" {
		os.Exit(tryAll())
	}
	if address := os.Getenv(dialEnv); address != "" {
		os.Exit(dialAndTell(address))
	}
	if os.Getenv(examinerEnv) != "" {
		os.Exit(examineAndTell())
	}
	os.Exit(m.Run())
}

// asNobody runs this test binary, with a variable set, as somebody without subordinate ids.
func asNobody(t *testing.T, variable string) []byte {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	needNative(t)
	cmd := exec.Command("runuser", "-u", "nobody", "--", copyOfTest(t))
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func startAndLeave(encoded string) int {
	var s prison.Spec
	if err := json.Unmarshal([]byte(encoded), &s); err != nil {
		panic(err)
	}
	if _, err := native.New().Start(context.Background(), s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// required tells whether the environment promised what a test needs.
func required(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("AIRLOCK_TEST_REQUIRE"), ","), what)
}

func needNative(t *testing.T) prison.Backend {
	t.Helper()
	b := native.New()
	if err := b.Probe(t.Context()); err != nil {
		var u *prison.Unavailable
		mend := ""
		if errors.As(err, &u) {
			mend = strings.Join(u.Mend, "; ")
		}
		if required("native") {
			t.Fatalf("%v (%s)", err, mend)
		}
		t.Skipf("SKIPPED, NOTHING WAS TESTED: %v; to mend it: %s", err, mend)
	}
	return b
}

// ownOffset gives each run of these tests a phantom of its own: they count its processes.
var ownOffset = os.Getpid() % 60000

// options returns a phantom for the current user.
func options(t testing.TB) prisontest.Options {
	t.Helper()
	if os.Geteuid() == 0 {
		return prisontest.Options{UID: 1879100000 + ownOffset, GID: 1879100000 + ownOffset, Network: required("network")}
	}
	return prisontest.Options{UID: firstSubID(t, "/etc/subuid"), GID: firstSubID(t, "/etc/subgid"), Network: required("network")}
}

func firstSubID(t testing.TB, path string) int {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var start int
		name, rest, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscanf(rest, "%d:", &start); err == nil && (name == u.Username || name == u.Uid) {
			return start + 77 + ownOffset
		}
	}
	t.Fatalf("no range for %s in %s", u.Username, path)
	return 0
}

func TestBackend(t *testing.T) { prisontest.Run(t, needNative(t), options(t)) }

// TestOrdinaryUser runs all of these tests again as somebody who is not root.
func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: every test has run as an ordinary user")
	}
	name := os.Getenv("AIRLOCK_TEST_USER")
	if name == "" {
		name = "airlock-test"
	}
	if _, err := user.Lookup(name); err != nil {
		hint := "sudo useradd -m " + name + "; then see that it has a range in /etc/subuid and /etc/subgid"
		if required("rootless") {
			t.Fatalf("no user %s: %s", name, hint)
		}
		t.Skipf("SKIPPED, ORDINARY USERS ARE NOT TESTED: no user %s (AIRLOCK_TEST_USER): %s", name, hint)
	}
	binary := copyOfTest(t)
	temp := filepath.Join(filepath.Dir(binary), "tmp")
	if err := os.Mkdir(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	require := "native"
	if required("network") {
		require += ",network"
	}
	cmd := exec.CommandContext(t.Context(), "runuser", "-u", name, "--", binary, "-test.v="+fmt.Sprint(testing.Verbose()), "-test.timeout=120s")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "AIRLOCK_TEST_REQUIRE="+require, "HOME=/nonexistent")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as %s: %v\n%s", name, err, out)
	} else if testing.Verbose() {
		t.Logf("as %s:\n%s", name, out)
	}
}

// copyOfTest puts the test binary where everybody can execute it.
func copyOfTest(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "prison")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	path := filepath.Join(dir, "native.test")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, self); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
