package land

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
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
		gitopstest.Check(t, gitops.CopyFile(at(name), at(name+".copy")))
		if !sameContent(at(name), at(name+".copy")) {
			t.Errorf("%s was not copied as it is", name)
		}
		if err := gitops.CopyFile(at(name), at(name+".copy")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s copied over something: %v", name, err)
		}
	}
	if sameContent(at("plain"), at("program")) || sameContent(at("plain"), at("link")) || sameContent(at("plain"), at("none")) {
		t.Error("sameContent takes different files for equal")
	}
	if gitops.OtherDevice(dir, at("plain")) {
		t.Error("one folder on two devices")
	}
}

// The git directory is on another file system than the work tree, as usual for /var/tmp when the tests run in memory.
func TestLandAcrossFileSystems(t *testing.T) {
	t.Parallel()
	elsewhere, err := os.MkdirTemp("/var/tmp", "elsewhere-")
	gitopstest.Check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(elsewhere) })
	top := filepath.Join(t.TempDir(), "top")
	gitopstest.Command(t, "", nil, "init", "-q", "-b", "main", "--separate-git-dir="+filepath.Join(elsewhere, "git"), top)
	w := openWorld(t, top)
	old := w.CommitAll(gitopstest.Files{"a": "1", "d/x": "1"})
	new := w.Built(old, gitopstest.Files{"a": gitopstest.Execute + "2", "d/x": gitopstest.Absent, "d/y": gitopstest.LinkTo + "../a", "n/z": "3"})
	rest()
	before := w.picture()
	k := &killFixture{world: w, old: old, new: new, request: w.landing(old, new), before: before}
	if !k.kill(stepSwing + ":3") {
		t.Fatal("not killed")
	}
	gitopstest.Check(t, k.recover())
	k.isBefore()
	w.land(old, new)
	w.likeCheckout(new)
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
