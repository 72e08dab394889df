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

// TestExpire makes more checkpoints than are kept. Exactly the oldest ones beyond the limit go, each time, and their objects are removed
// many at once. The others stay complete.
func TestExpire(t *testing.T) {
	w := newWorld(t, DefaultBytes)
	const more = removedAtOnce + 3
	for n := range MostCheckpoints + more {
		if err := os.WriteFile(filepath.Join(w.dir, "file"), fmt.Append(nil, n), 0o600); err != nil {
			t.Fatal(err)
		}
		number := w.take("").Number
		removed, err := w.store.Expire()
		if want := min(1, max(0, number-MostCheckpoints)); err != nil || removed != want || len(w.store.known) != min(number, MostCheckpoints) {
			t.Fatalf("checkpoint %d: removed %d, want %d; %d are left: %v", number, removed, want, len(w.store.known), err)
		}
	}
	packs := func() int { return len(gitops.Glob(w.store.folder, "pack-*.pack")) }
	if removed, err := w.store.Trim(); err != nil || removed != 0 || packs() != 1 {
		t.Fatalf("removed %d more, %d packs: %v", removed, packs(), err)
	}
	all, err := w.store.List()
	if err != nil || len(all) != MostCheckpoints || all[0].Number != more+1 {
		t.Fatalf("%d checkpoints, the first is %d: %v", len(all), all[0].Number, err)
	}
	w.restore(all[0], RestoreOptions{})
	if content, err := os.ReadFile(filepath.Join(w.dir, "file")); err != nil || string(content) != fmt.Sprint(more) {
		t.Errorf("restored %q: %v", content, err)
	}
	if out, err := exec.Command("git", "-C", w.store.dir, "fsck", "--strict", "--no-dangling").CombinedOutput(); err != nil {
		t.Fatalf("git fsck: %v: %s", err, out)
	}
}
