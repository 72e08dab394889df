package quarantine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// handed is a repository with an installed pack whose commit a ref reaches.
func handed(t *testing.T) (i *airlock, h *Handover, outer gitops.OID) {
	i = newInner(t, gitopstest.Files{"a": "1"})
	b, look := i.bridge(t)
	tip := i.CommitAll(gitopstest.Files{"a": "2", "b": "3"})
	i.receive(tip, i.root)
	links, err := i.q.History(t.Context(), tip, []gitops.OID{i.root})
	gitopstest.Check(t, err)
	outer = i.mapped(b, look, links)
	gitopstest.Check(t, b.Give(t.Context(), look, outer, []gitops.OID{i.base}))
	return i, b.handover, outer
}

func (h *Handover) keeps(t *testing.T) int {
	t.Helper()
	keeps, err := filepath.Glob(filepath.Join(h.store(), "*.keep"))
	gitopstest.Check(t, err)
	return len(keeps)
}

// An installed pack that no ref reaches stays until it is released, and no other .keep file is touched.
func TestHandoverIsKeptUntilReleased(t *testing.T) {
	t.Parallel()
	i, h, outer := handed(t)
	theirs := filepath.Join(h.store(), "pack-"+strings.Repeat("ab", 20)+".keep")
	gitopstest.Check(t, os.WriteFile(theirs, []byte("theirs"), 0o600))
	i.outer.Run("gc", "-q", "--prune=now")
	i.outer.Run("repack", "-adq")
	i.outer.Run("rev-list", "--objects", "--quiet", string(outer))
	gitopstest.Check(t, os.WriteFile(gitops.JournalPath(h.state), nil, 0o600))
	gitopstest.Check(t, h.Release())
	if n := h.keeps(t); n != 2 {
		t.Fatalf("%d packs are kept while a journal waits, want 2", n)
	}
	gitopstest.Check(t, os.Remove(gitops.JournalPath(h.state)))
	gitopstest.Check(t, h.Release())
	if n := h.keeps(t); n != 1 {
		t.Fatalf("%d packs are kept, want 1", n)
	}
	gitopstest.Check(t, os.Remove(theirs))
	i.outer.Run("repack", "-adq")
	if _, err := gitopstest.TryCommand(i.outer.Top, nil, "cat-file", "-e", string(outer)); err == nil {
		t.Error("it is kept after all")
	}
}

// The rest of an interrupted handover is removed by the next release.
func TestReleaseSweepsAHalf(t *testing.T) {
	t.Parallel()
	i, h, _ := handed(t)
	gitopstest.Check(t, h.Release())
	name := filepath.Join(h.store(), "pack-"+strings.Repeat("cd", 20))
	left := []string{name + ".keep", name + ".pack", h.half("pack-x.pack"), filepath.Join(h.dir, "new.pack"), filepath.Join(h.dir, "pack-y.pack")}
	for _, file := range left {
		gitopstest.Check(t, os.WriteFile(file, []byte(h.mark), 0o600))
	}
	gitopstest.Check(t, h.Release())
	for _, file := range left {
		if there(file) {
			t.Errorf("left: %s", file)
		}
	}
	i.outer.Run("fsck", "--strict")
}

// Objects that the repository loses are installed again. Packs that it has repacked, or does not need, are forgotten.
func TestHeal(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]bool{"lost": true, "packed anew": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, h, outer := handed(t)
			i.outer.Run("update-ref", "refs/airlock/7f3a/promoted", string(outer))
			gitopstest.Check(t, h.Release())
			if lose {
				packs, err := filepath.Glob(filepath.Join(h.store(), "pack-*"))
				gitopstest.Check(t, err)
				for _, file := range packs {
					gitopstest.Check(t, os.Remove(file))
				}
			} else {
				i.outer.Run("repack", "-adq")
			}
			again, err := h.Heal(t.Context(), i.base, "refs/airlock/7f3a/promoted")
			if err != nil || (again > 0) != lose {
				t.Fatalf("Heal: %d, %v", again, err)
			}
			i.outer.Run("rev-list", "--objects", "--quiet", "refs/airlock/7f3a/promoted")
			if n := h.keeps(t); n != again {
				t.Errorf("%d packs are kept, want %d", n, again)
			}
			held, err := filepath.Glob(filepath.Join(h.dir, "*.idx"))
			if err != nil || len(held) != again {
				t.Errorf("the host state has %d packs, want %d: %v", len(held), again, err)
			}
		})
	}
}

// otherFileSystem makes a folder on a file system that does not hold dir.
func otherFileSystem(t *testing.T, dir string) string {
	t.Helper()
	device := func(dir string) any {
		info, err := os.Stat(dir)
		gitopstest.Check(t, err)
		return info.Sys().(*syscall.Stat_t).Dev
	}
	for _, place := range []string{"/dev/shm", "/tmp", "/var/tmp"} {
		made, err := os.MkdirTemp(place, "airlock-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.RemoveAll(made) })
		if device(made) != device(dir) {
			return made
		}
	}
	prisontest.Need(t, "native", errors.New("no second file system"))
	return ""
}

// A store on another file system, or on one without hard links, gets a copy, readable by the group of a shared repository.
func TestHandoverByCopy(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1"})
	elsewhere := otherFileSystem(t, i.outer.CommonDir)
	packs := filepath.Join(i.outer.CommonDir, "objects", "pack")
	gitopstest.Check(t, os.RemoveAll(packs))
	gitopstest.Check(t, os.Chmod(elsewhere, 0o750|os.ModeSetgid))
	i.outer.Run("config", "core.sharedRepository", "0640")
	gitopstest.Check(t, os.Symlink(elsewhere, packs))
	tip := i.CommitAll(gitopstest.Files{"a": "2"})
	i.receive(tip, i.root)
	outer := i.give(t, []Link{{Commit: tip, Parents: []gitops.OID{i.root}}})
	i.outer.Run("fsck", "--strict", string(outer))
	entries, err := os.ReadDir(elsewhere)
	gitopstest.Check(t, err)
	for _, e := range entries {
		info, err := e.Info()
		gitopstest.Check(t, err)
		if info.Mode().Perm() != 0o440 {
			t.Errorf("%s has the mode %v", e.Name(), info.Mode())
		}
	}
}

// there reports whether a file exists.
func there(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
