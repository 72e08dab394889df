package hosttree

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRemove(t *testing.T) {
	base := t.TempDir()
	outside := filepath.Join(base, "outside")
	tree := filepath.Join(base, "tree")
	for _, dir := range []string{outside, tree, filepath.Join(tree, "a", "b"), filepath.Join(tree, "many")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	treasure := filepath.Join(outside, "treasure")
	if err := os.WriteFile(treasure, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"link", "a/link", "a/b/link"} {
		if err := os.Symlink(outside, filepath.Join(tree, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(tree, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(tree, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	for i := range 600 {
		if err := os.WriteFile(filepath.Join(tree, "many", string(rune('A'+i%26))+strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			if err := os.MkdirAll(filepath.Join(tree, "many", "dir"+strconv.Itoa(i), "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Remove(tree); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(tree); !os.IsNotExist(err) {
		t.Errorf("the tree is there: %v", err)
	}
	if _, err := os.Stat(treasure); err != nil {
		t.Errorf("a file outside: %v", err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	if err := Remove(link); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(treasure); err != nil {
		t.Errorf("a file behind a link: %v", err)
	}
}

// TestRemoveDeep removes a tree that is deeper than a path can be long, with fewer descriptors than the tree has levels.
func TestRemoveDeep(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := unix.Open(tree, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range 3000 {
		if err == nil {
			err = unix.Mkdirat(dir, "d", 0o700)
		}
		next := -1
		if err == nil {
			next, err = unix.Openat(dir, "d", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		unix.Close(dir)
		dir = next
	}
	unix.Close(dir)
	var limit unix.Rlimit
	if err = errors.Join(err, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)); err != nil {
		t.Fatal(err)
	}
	low := unix.Rlimit{Cur: 1000, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	err = Remove(tree)
	if _, gone := os.Lstat(tree); err != nil || !os.IsNotExist(gone) {
		t.Errorf("%v, %v", err, gone)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
}
