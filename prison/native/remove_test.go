//go:build linux

package native

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRemoveTree(t *testing.T) {
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
	if err := removeTree(tree); err != nil {
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
	if err := removeTree(link); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(treasure); err != nil {
		t.Errorf("a file behind a link: %v", err)
	}
}

func TestFreeRange(t *testing.T) {
	for _, c := range []struct {
		taken []idRange
		want  int
	}{
		{nil, 100000},
		{[]idRange{{100000, 65536}}, 165536},
		{[]idRange{{165536, 65536}, {100000, 65536}}, 231072},
		{[]idRange{{120000, 10}}, 120010},
		{[]idRange{{1000, 10}}, 100000},
	} {
		if got := freeRange(c.taken); got != c.want {
			t.Errorf("freeRange(%v) = %d, want %d", c.taken, got, c.want)
		}
	}
}

func TestMergeEnv(t *testing.T) {
	got := mergeEnv([]string{"A=1", "B=2"}, []string{"A=3", "C=4"}, []string{"C=5"})
	want := []string{"A=3", "B=2", "C=5"}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("mergeEnv: %q", got)
	}
}
