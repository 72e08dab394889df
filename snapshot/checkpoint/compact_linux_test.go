package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// TestCompact removes the older half of many checkpoints, and packs the rest into one pack, which git must accept. If a byte has changed
// on the disk, that fails, and no file is removed.
func TestCompact(t *testing.T) {
	w := newWorld(t, DefaultBytes)
	r := rand.New(rand.NewPCG(7, 26))
	recent, hints := &Recent{}, watched(t, w.dir)
	big := make([]byte, 3<<20)
	for i := range big {
		big[i] = byte(r.Uint32())
	}
	if err := os.WriteFile(filepath.Join(w.dir, "big"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		damage(t, r, w.dir, 6)
		touched, err := hints.Touched()
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.store.Take(t.Context(), w.Client, Options{Now: begin, Recent: recent, Hinted: true, Touched: touched}); err != nil {
			t.Fatal(err)
		}
	}
	before, err := w.store.List()
	if err != nil {
		t.Fatal(err)
	}
	kept := before[20:]
	for _, c := range before[:20] {
		if err := os.Remove(w.store.ref(c.Number)); err != nil {
			t.Fatal(err)
		}
	}
	w.store.known = slices.Delete(w.store.known, 0, 20)
	packed := w.store.Size()
	if err := w.store.compact(); err != nil {
		t.Fatal(err)
	}
	packs := gitops.Glob(w.store.folder, "pack-*.pack")
	if all, err := w.store.List(); err != nil || fmt.Sprint(all) != fmt.Sprint(kept) || len(packs) != 1 || w.store.Size() >= packed {
		t.Fatalf("%v: %d packs, %d bytes of %d, checkpoints %v, want %v", err, len(packs), w.store.Size(), packed, all, kept)
	}
	if out, err := exec.Command("git", "-C", w.store.dir, "fsck", "--strict", "--no-dangling").CombinedOutput(); err != nil {
		t.Fatalf("git fsck: %v: %s", err, out)
	}

	content, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(packs[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.store.compact(); err == nil || len(gitops.Glob(w.store.folder, "pack-*.pack")) != 1 {
		t.Errorf("a changed byte: %v", err)
	}
}
