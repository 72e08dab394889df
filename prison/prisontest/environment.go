package prisontest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// Required reports whether the test environment must provide something: AIRLOCK_TEST_REQUIRE is a list of such things.
func Required(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("AIRLOCK_TEST_REQUIRE"), ","), what)
}

// Need skips a test if err reports that something is missing, or fails it if the test environment must provide it.
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

// OrdinaryUser returns the ordinary user as whom root repeats tests. It skips the test if this process is not root's.
func OrdinaryUser(t *testing.T) *user.User {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: every test has run as an ordinary user")
	}
	name := cmp.Or(os.Getenv("AIRLOCK_TEST_USER"), "airlock-test")
	account, err := user.Lookup(name)
	if err != nil {
		hint := "sudo useradd -m " + name + "; then see that it has a range in /etc/subuid and /etc/subgid"
		if Required("rootless") {
			t.Fatalf("no user %s: %s", name, hint)
		}
		t.Skipf("SKIPPED, ORDINARY USERS ARE NOT TESTED: no user %s (AIRLOCK_TEST_USER): %s", name, hint)
	}
	return account
}

// AsOrdinaryUser runs all tests of the test binary again as an ordinary user who is also a member of the groups. require is the value of
// AIRLOCK_TEST_REQUIRE for these tests. skip is the end of a regular expression of tests to leave out.
func AsOrdinaryUser(t *testing.T, require, skip string, groups ...string) {
	t.Helper()
	account := OrdinaryUser(t)
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
	arguments := []string{"-u", account.Username}
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
	// These tests would give the same result: the other engines belong to the machine, and an engine builds images and limits memory for
	// all users alike. The tests of recipes need the sources, which this user may be unable to read.
	arguments = append(arguments, "--", binary, "-test.v", "-test.timeout=60m", "-test.skip=^TestOtherEngines$|^TestRecipe|^Test(Failed)?Build|^TestMemory$|^TestEmptyScript$"+skip)
	if testing.Short() {
		arguments = append(arguments, "-test.short")
	}
	cmd := exec.CommandContext(t.Context(), "runuser", arguments...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "AIRLOCK_TEST_REQUIRE="+require, "HOME=/nonexistent")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as %s: %v\n%s", account.Username, err, out)
	}
	reportSkips(t, string(out))
}

// reportSkips reports the skipped tests in the output of go test -v of another process, as skipped subtests of t.
func reportSkips(t *testing.T, output string) {
	t.Helper()
	why := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if name, skipped := strings.CutPrefix(line, "--- SKIP: "); skipped {
			if name, _, _ = strings.Cut(name, " "); name == t.Name() {
				continue // the other process skips this test, since it is not root's
			}
			t.Run(name, func(t *testing.T) { t.Skip(why) })
		} else if _, reason, found := strings.Cut(line, ".go:"); found {
			_, why, _ = strings.Cut(reason, ": ")
		}
	}
}

// CopyOfTest copies the test binary to a place where all users can execute it.
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
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, filepath.Base(os.Args[0]))
	if err := os.WriteFile(path, self, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Phantom returns ids that the current user can give a prison. Each process gets others, because tests count the processes of a uid.
func Phantom(t testing.TB) (uid, gid int) {
	t.Helper()
	own := os.Getpid() % 60000
	if os.Geteuid() == 0 {
		return 1879100000 + own, 1879100000 + own
	}
	return firstSubID(t, "/etc/subuid") + own, firstSubID(t, "/etc/subgid") + own
}

// firstSubID returns the start of the current user's first range in a file in the format of subuid(5).
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
