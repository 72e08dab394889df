package ledger

import (
	"os"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// allocated returns how many bytes the file of a writer has on the disk.
func allocated(t *testing.T, f *os.File) int64 {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	const block = 512 // stat(2)
	return info.Sys().(*syscall.Stat_t).Blocks * block
}

// TestRoomIsKept checks that there is room for all records after each one, also in the next files.
func TestRoomIsKept(t *testing.T) {
	const records = 100
	dir := t.TempDir()
	w := open(t, dir, 1<<20)
	for range 3 * (1 << 20) / 300 {
		if err := w.Append(control.Record{Kind: control.KindFlow}); err != nil {
			t.Fatal(err)
		}
		if err := w.Reserve(records); err != nil {
			t.Fatal(err)
		}
		if has := allocated(t, w.file); has < w.size+records*room {
			t.Fatalf("%d bytes on the disk for %d and %d records", has, w.size, records)
		}
	}
	if _, err := os.Stat(dir + "/" + numbered(1)); err != nil {
		t.Error("no file was rotated", err)
	}
}
