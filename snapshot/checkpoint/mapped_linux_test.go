package checkpoint

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// TestSharedMapping changes a file through a shared mapping, without a new ctime. The next checkpoint that walks through the workspace
// must contain the change.
func TestSharedMapping(t *testing.T) {
	w := newWorld(t, DefaultBytes)
	path := filepath.Join(w.dir, "db")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page, err := unix.Mmap(int(f.Fd()), 0, 6, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(page)
	recent := &Recent{}
	take := func(o Options) IDs {
		t.Helper()
		o.Now, o.Recent, o.OnlyNew = begin, recent, true
		taken, err := w.store.Take(t.Context(), w.Client, o)
		if err != nil {
			t.Fatal(err)
		}
		return taken.IDs
	}
	copy(page, "mapped")
	time.Sleep(2 * stableTime)
	old := take(Options{})
	copy(page, "after!")
	hinted := take(Options{Hinted: true, Touched: []string{""}})
	whole := take(Options{})
	if want := w.fromScratch(); whole == old || whole != want {
		t.Errorf("ids %v, before the change %v, from scratch %v; a hinted checkpoint has %v", whole, old, want, hinted)
	}
}

// TestContentsThatAreReadAgain compares a file with the same file in the last checkpoint.
func TestContentsThatAreReadAgain(t *testing.T) {
	for _, c := range []struct {
		stable, lasting bool
		m               matcher
		read            bool
	}{
		{true, true, matcher{}, false},
		{true, false, matcher{}, false},
		{false, false, matcher{}, true},
		{true, true, matcher{walked: true}, false},
		{true, false, matcher{walked: true}, true},
		{true, true, matcher{walked: true, again: true}, true},
	} {
		old := &node{name: "f", kind: files.Regular, stable: c.stable, lasting: c.lasting}
		recent := &node{name: "f", kind: files.Regular}
		c.m.entry("", old, recent)
		if got := len(c.m.unread) > 0; got != c.read || !got && (recent.stable != c.stable || recent.lasting != c.lasting) {
			t.Errorf("stable %t, lasting %t, %+v: read %t", c.stable, c.lasting, c.m, got)
		}
	}
}
