package gitops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// handed is a repository to which a commit was handed over, on a ref.
func handed(t *testing.T) (i *inner, h *Handover, outer OID) {
	i = newInner(t, files{"a": "1"})
	b, look := i.bridge(t)
	tip := i.commit(files{"a": "2", "b": "3"})
	i.receive(tip, i.root)
	links, err := i.q.History(t.Context(), tip, []OID{i.root})
	check(t, err)
	outer = i.mapped(b, look, links)
	check(t, b.Give(t.Context(), look, outer, []OID{i.base}))
	return i, b.handover, outer
}

func (h *Handover) keeps(t *testing.T) int {
	t.Helper()
	keeps, err := filepath.Glob(filepath.Join(h.store(), "*.keep"))
	check(t, err)
	return len(keeps)
}

// What was handed over and no ref reaches stays as long as it is not released, and no other .keep file is touched.
func TestHandoverIsKeptUntilReleased(t *testing.T) {
	t.Parallel()
	i, h, outer := handed(t)
	theirs := filepath.Join(h.store(), "pack-"+strings.Repeat("ab", 20)+".keep")
	check(t, os.WriteFile(theirs, []byte("theirs"), 0o600))
	i.outer.git("gc", "-q", "--prune=now")
	i.outer.git("repack", "-adq")
	i.outer.git("rev-list", "--objects", "--quiet", string(outer))
	check(t, os.WriteFile(JournalPath(h.state), nil, 0o600))
	check(t, h.Release())
	if n := h.keeps(t); n != 2 {
		t.Fatalf("%d packs are kept while a journal waits, want 2", n)
	}
	check(t, os.Remove(JournalPath(h.state)))
	check(t, h.Release())
	if n := h.keeps(t); n != 1 {
		t.Fatalf("%d packs are kept, want 1", n)
	}
	check(t, os.Remove(theirs))
	i.outer.git("repack", "-adq")
	if _, err := tryCommand(i.outer.Top, nil, "cat-file", "-e", string(outer)); err == nil {
		t.Error("it is kept after all")
	}
}

// A half of a hand-over goes with the next release.
func TestReleaseSweepsAHalf(t *testing.T) {
	t.Parallel()
	i, h, _ := handed(t)
	check(t, h.Release())
	name := filepath.Join(h.store(), "pack-"+strings.Repeat("cd", 20))
	left := []string{name + ".keep", name + ".pack", h.half("pack-x.pack"), filepath.Join(h.dir, "new.pack"), filepath.Join(h.dir, "pack-y.pack")}
	for _, file := range left {
		check(t, os.WriteFile(file, []byte(h.mark), 0o600))
	}
	check(t, h.Release())
	for _, file := range left {
		if there(file) {
			t.Errorf("left: %s", file)
		}
	}
	i.outer.git("fsck", "--strict")
}

// What the repository loses of what was handed over comes again. What it has packed anew, or has no use for, is forgotten.
func TestHeal(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]bool{"lost": true, "packed anew": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, h, outer := handed(t)
			i.outer.git("update-ref", "refs/airlock/7f3a/promoted", string(outer))
			check(t, h.Release())
			if lose {
				packs, err := filepath.Glob(filepath.Join(h.store(), "pack-*"))
				check(t, err)
				for _, file := range packs {
					check(t, os.Remove(file))
				}
			} else {
				i.outer.git("repack", "-adq")
			}
			again, err := h.Heal(t.Context(), i.base, "refs/airlock/7f3a/promoted")
			if err != nil || (again > 0) != lose {
				t.Fatalf("Heal: %d, %v", again, err)
			}
			i.outer.git("rev-list", "--objects", "--quiet", "refs/airlock/7f3a/promoted")
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

// A store on another file system, or on one without hard links, gets a copy, readable by the group of a shared repository.
func TestHandoverByCopy(t *testing.T) {
	t.Parallel()
	elsewhere, err := os.MkdirTemp("/dev/shm", "airlock-test-")
	if err != nil {
		t.Skip("there is no second file system:", err)
	}
	t.Cleanup(func() { os.RemoveAll(elsewhere) })
	i := newInner(t, files{"a": "1"})
	packs := filepath.Join(i.outer.CommonDir, "objects", "pack")
	check(t, os.RemoveAll(packs))
	check(t, os.Chmod(elsewhere, 0o750|os.ModeSetgid))
	check(t, os.Symlink(elsewhere, packs))
	tip := i.commit(files{"a": "2"})
	i.receive(tip, i.root)
	outer := i.give(t, []Link{{Commit: tip, Parents: []OID{i.root}}})
	i.outer.git("fsck", "--strict", string(outer))
	entries, err := os.ReadDir(elsewhere)
	check(t, err)
	for _, e := range entries {
		info, err := e.Info()
		check(t, err)
		if info.Mode().Perm() != 0o440 {
			t.Errorf("%s has the mode %v", e.Name(), info.Mode())
		}
	}
}
