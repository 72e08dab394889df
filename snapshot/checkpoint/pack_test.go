package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
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

func TestCheckpointThatCannotBeSavedLeavesNoPack(t *testing.T) {
	s, err := OpenStore(t.TempDir(), DefaultBytes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPack(s.folder, s.has, s.most)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.dir, refFolder)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.save(p, roots{}, "", time.Time{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("saved without a folder for its ref: %v", err)
	}
	if left, err := os.ReadDir(s.folder); len(left) != 0 || err != nil {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	if err := p.file.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("close the pack again: %v, want it closed", err)
	}
}
