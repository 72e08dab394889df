package promote

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The folder of what was in the way tells whether somebody is at it, for a while.
func TestInWay(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if err := os.MkdirAll(filepath.Join(top, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	changed := func(at time.Time) {
		t.Helper()
		if err := os.Chtimes(filepath.Join(top, "a"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	after := func(d time.Duration) time.Time { return begun.Add(d) }
	changed(begun)
	var nothing inWay
	if nothing.stirs(top, begun) {
		t.Error("nothing was in the way")
	}

	quiet := inWay{paths: []string{"a/f", "gone/f"}}
	if !quiet.stirs(top, after(stirTime/2)) || !quiet.stirs(top, after(stirTime-1)) {
		t.Error("its folder changed a moment ago")
	}
	if quiet.stirs(top, after(stirTime)) {
		t.Error("its folder is quiet")
	}
	changed(after(stirTime))
	if quiet.stirs(top, after(stirTime)) {
		t.Error("it is not in the way any more")
	}

	busy := inWay{paths: []string{"a/f"}}
	for at := time.Duration(0); at < stirMost; at += stirTime / 2 {
		changed(after(at))
		if !busy.stirs(top, after(at)) {
			t.Errorf("after %v: not waited for", at)
		}
	}
	changed(after(stirMost))
	if busy.stirs(top, after(stirMost)) {
		t.Error("waited for too long")
	}
}
