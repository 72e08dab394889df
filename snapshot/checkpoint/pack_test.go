package checkpoint

import (
	"os"
	"path/filepath"
	"testing"
)

// packOf writes a pack with one object into a folder.
func packOf(t *testing.T, folder string) (*pack, error) {
	t.Helper()
	p, err := newPack(folder, nil, 1<<20)
	if err == nil {
		_, err = p.put("blob", []byte("content"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return p, p.finish()
}

// An index without its pack would make a store unreadable.
func TestPackWithoutItsNameHasNoIndex(t *testing.T) {
	p, err := packOf(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, filepath.Base(p.installed)), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := packOf(t, folder); err == nil {
		t.Error("a pack got the name of a folder")
	}
	if found, err := filepath.Glob(filepath.Join(folder, "*.idx")); len(found) != 0 || err != nil {
		t.Errorf("found %q (%v), want no index", found, err)
	}
}
