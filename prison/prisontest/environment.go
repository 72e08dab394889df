package prisontest

import (
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
)

// Required reports whether the environment promised what a test needs: AIRLOCK_TEST_REQUIRE names it.
func Required(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("AIRLOCK_TEST_REQUIRE"), ","), what)
}

// Need skips a test for which err says that something is missing, or fails it where the environment promised that.
func Need(t testing.TB, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	mend := ""
	if u := (*prison.Unavailable)(nil); errors.As(err, &u) {
		mend = strings.Join(u.Mend, "; ")
	}
	if Required(what) {
		t.Fatalf("%v (%s)", err, mend)
	}
	t.Skipf("SKIPPED, NOTHING WAS TESTED: %v; to mend it: %s", err, mend)
}

// AsOrdinaryUser runs all tests of the calling test binary once more as somebody who is not root and a member of more
// groups, with what the environment promises them.
func AsOrdinaryUser(t *testing.T, require string, groups ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: every test has run as an ordinary user")
	}
	name := os.Getenv("AIRLOCK_TEST_USER")
	if name == "" {
		name = "airlock-test"
	}
	account, err := user.Lookup(name)
	if err != nil {
		hint := "sudo useradd -m " + name + "; then see that it has a range in /etc/subuid and /etc/subgid"
		if Required("rootless") {
			t.Fatalf("no user %s: %s", name, hint)
		}
		t.Skipf("SKIPPED, ORDINARY USERS ARE NOT TESTED: no user %s (AIRLOCK_TEST_USER): %s", name, hint)
	}
	binary := CopyOfTest(t)
	temp := filepath.Join(filepath.Dir(binary), "tmp")
	if err := os.Mkdir(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	if Required("network") {
		require += ",network"
	}
	arguments := []string{"-u", name}
	if len(groups) > 0 {
		own, err := user.LookupGroupId(account.Gid)
		if err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, "-g", own.Name)
	}
	for _, group := range groups {
		arguments = append(arguments, "-G", group)
	}
	// What other engines there are is the machine's, not the user's.
	arguments = append(arguments, "--", binary, "-test.v", "-test.timeout=15m", "-test.skip=^TestOtherEngines$")
	cmd := exec.CommandContext(t.Context(), "runuser", arguments...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "AIRLOCK_TEST_REQUIRE="+require, "HOME=/nonexistent")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as %s: %v\n%s", name, err, out)
	}
	tellSkips(t, string(out))
}

// tellSkips makes tests of what go test -v says was skipped in another process, so that they are told as others are.
func tellSkips(t *testing.T, said string) {
	t.Helper()
	why := ""
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if name, skipped := strings.CutPrefix(line, "--- SKIP: "); skipped {
			if name, _, _ = strings.Cut(name, " "); name == t.Name() {
				continue // they are somebody else already
			}
			t.Run(name, func(t *testing.T) { t.Skip(why) })
		} else if _, reason, found := strings.Cut(line, ".go:"); found {
			_, why, _ = strings.Cut(reason, ": ")
		}
	}
}

// CopyOfTest puts the test binary where everybody can execute it.
func CopyOfTest(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "walls")
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
	path := filepath.Join(dir, filepath.Base(os.Args[0]))
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

// Phantom returns ids that the current user can give a prison: others for each run of tests, which count processes.
func Phantom(t testing.TB) (uid, gid int) {
	t.Helper()
	own := os.Getpid() % 60000
	if os.Geteuid() == 0 {
		return 1879100000 + own, 1879100000 + own
	}
	return firstSubID(t, "/etc/subuid") + own, firstSubID(t, "/etc/subgid") + own
}

// firstSubID returns where the current user's first range in a file of subuid(5) form starts.
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
			return start
		}
	}
	t.Fatalf("no range for %s in %s", u.Username, path)
	return 0
}
