package inotify

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoDescriptors watches a folder that cannot be listed, because the process has no descriptor left. The folders in it would stay
// unwatched, and no event would say so.
func TestNoDescriptors(t *testing.T) {
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	for _, allowed := range []bool{true, false} {
		tree, err := Watch(top, func(list func()) {
			if !allowed {
				none := limit
				none.Cur = 0
				if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
					t.Error(err)
				}
				defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
			}
			list()
		})
		if errors.Is(err, ErrLost) == allowed || (tree != nil) != allowed {
			t.Errorf("descriptors %v: %v", allowed, err)
		}
		if tree != nil {
			tree.Close()
		}
	}
}
