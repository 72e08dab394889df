package moments

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// TestRead reads the times of a log that has lost its beginning.
func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "times")
	if _, err := Read(name); !errors.Is(err, prison.ErrNotLaunched) {
		t.Errorf("without a file: %v", err)
	}
	begun := time.UnixMilli(1_000_000).UTC()
	l := New(name)
	defer l.Close()
	l.Add(10, begun)
	l.Add(10, begun.Add(pause/2)) // so soon that it gets no line
	l.Add(10, begun.Add(pause))
	check := func(want ...int64) {
		t.Helper()
		all, err := Read(name)
		if err != nil || len(all) != len(want) {
			t.Fatalf("%v, %v; want %v", all, err, want)
		}
		for i, m := range all {
			if m.Offset != want[i] || !m.At.Equal(begun.Add(time.Duration(i)*pause)) {
				t.Errorf("moment %d: %v, want the offset %d", i, m, want[i])
			}
		}
	}
	check(0, 20)
	l.Begins(15)
	l.Add(10, begun.Add(2*pause))
	check(0, 5, 15)
}

// TestFailedWrite checks that a line which was written in part is not in the file.
func TestFailedWrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "times")
	l := New(name)
	defer l.Close()
	begun := time.UnixMilli(1_000_000).UTC()
	l.Add(10, begun)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	small := unix.Rlimit{Cur: uint64(l.size) + 3, Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	l.Add(10, begun.Add(pause))
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	l.Add(10, begun.Add(2*pause))
	all, err := Read(name)
	if err != nil || len(all) != 2 || all[1].Offset != 20 || !all[1].At.Equal(begun.Add(2*pause)) {
		t.Errorf("%v, %v", all, err)
	}
}
