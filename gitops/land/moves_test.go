package land

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// A file that cannot be renamed across file systems is copied to a name next to its destination.
func TestCopyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	gitopstest.Check(t, os.WriteFile(at("plain"), []byte("1\n"), 0o644))
	gitopstest.Check(t, os.WriteFile(at("program"), []byte("2\n"), 0o755))
	gitopstest.Check(t, os.Symlink("nowhere", at("link")))
	for _, name := range []string{"plain", "program", "link"} {
		gitopstest.Check(t, durable.CopyFile(at(name), at(name+".copy")))
		if !sameContent(at(name), at(name+".copy")) {
			t.Errorf("%s was not copied as it is", name)
		}
		if err := durable.CopyFile(at(name), at(name+".copy")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s copied over something: %v", name, err)
		}
	}
	if sameContent(at("plain"), at("program")) || sameContent(at("plain"), at("link")) || sameContent(at("plain"), at("none")) {
		t.Error("sameContent takes different files for equal")
	}
	if durable.OtherDevice(dir, at("plain")) {
		t.Error("one folder on two devices")
	}
}

// The git directory is on another file system than the work tree.
func TestLandAcrossFileSystems(t *testing.T) {
	t.Parallel()
	k := newScattered(t)
	k.mustKill(stepSwing + ":3")
	gitopstest.Check(t, k.recover())
	k.isBefore()
	k.land(k.old, k.new)
	k.likeCheckout(k.new)
}

// newScattered returns a landing that changes a and removes d/x, from one file system to another.
func newScattered(t *testing.T) *killFixture {
	t.Helper()
	other := "/var/tmp"
	if shared := "/dev/shm"; !durable.OtherDevice(t.TempDir(), other) && durable.OtherDevice(t.TempDir(), shared) {
		other = shared
	}
	elsewhere, err := os.MkdirTemp(other, "elsewhere-")
	gitopstest.Check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(elsewhere) })
	top := filepath.Join(t.TempDir(), "top")
	gitopstest.Command(t, "", nil, "init", "-q", "-b", "main", "--separate-git-dir="+filepath.Join(elsewhere, "git"), top)
	w := openWorld(t, top)
	old := w.CommitAll(gitopstest.Files{"a": "1", "d/x": "1"})
	new := w.Built(old, gitopstest.Files{"a": gitopstest.Execute + "2", "d/x": gitopstest.Absent, "d/y": gitopstest.LinkTo + "../a", "n/z": "3"})
	rest()
	return &killFixture{world: w, old: old, new: new, request: w.landing(old, new), before: w.picture()}
}

// A displaced file stays on its file system, beside its place.
func TestRecoveryGivesBackWhatWasSavedAcrossFileSystems(t *testing.T) {
	t.Parallel()
	needsExchange(t)
	for step, c := range map[string]struct {
		path     string
		finished bool
	}{stepDisplaced + ":1": {"d/x", false}, stepDisplaced + ":2": {"a", false}, stepTree: {"a", false}, stepRefs: {"a", true}, stepIndex: {"a", true}} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			k := newScattered(t)
			if !durable.OtherDevice(k.Top, k.State) {
				if slices.Contains(strings.Split(os.Getenv("AIRLOCK_TEST_REQUIRE"), ","), "native") {
					t.Fatal("/var/tmp and /dev/shm are on the file system of the tests")
				}
				t.Skip("SKIPPED: /var/tmp and /dev/shm are on the file system of the tests")
			}
			k.mustKill(step)
			beside, err := filepath.Glob(filepath.Join(k.Top, filepath.Dir(c.path), ".landing-*"))
			if err != nil || len(beside) != 1 {
				t.Fatalf("displaced: %q, %v", beside, err)
			}
			want := k.before
			if c.finished {
				want = k.tree()
				delete(want, filepath.Base(beside[0]))
			}
			gitopstest.Check(t, os.WriteFile(beside[0], []byte("saved"), 0o644))
			want[c.path] = "-rw-r--r-- saved"
			gitopstest.Check(t, k.recover())
			if c.finished {
				k.tree().equals(t, want)
				k.landed(k.new)
			} else {
				k.isBefore()
			}
		})
	}
}

// Files that are checked out in a folder with the set-group-ID bit, as in shared work trees, get the group of the
// folder.
func TestLandKeepsGroupsOfFolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"d/a": "1"})
	gid := os.Getegid()
	if os.Geteuid() == 0 {
		gid = 12345 // who is not root may only give away to groups of their own
	}
	gitopstest.Check(t, os.Chown(filepath.Join(w.Top, "d"), -1, gid))
	gitopstest.Check(t, os.Chmod(filepath.Join(w.Top, "d"), 0o755|fs.ModeSetgid))
	w.land(old, w.Built(old, gitopstest.Files{"d/a": "2", "d/b": "3"}))
	for _, name := range []string{"d/a", "d/b"} {
		info, err := os.Stat(filepath.Join(w.Top, name))
		gitopstest.Check(t, err)
		if got := info.Sys().(*syscall.Stat_t).Gid; int(got) != gid {
			t.Errorf("%s belongs to group %d, want %d", name, got, gid)
		}
	}
}
