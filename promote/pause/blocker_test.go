package pause

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestBlockerRecentlyChanged changes the folder of a blocking path and checks how long a landing waits for it.
func TestBlockerRecentlyChanged(t *testing.T) {
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
	var nothing Blocker
	if nothing.RecentlyChanged(top, begun) {
		t.Error("recently changed although no path was in the way")
	}

	quiet := Blocker{Paths: []string{"a/f", "gone/f"}}
	if !quiet.RecentlyChanged(top, after(quietTime/2)) || !quiet.RecentlyChanged(top, after(quietTime-1)) {
		t.Error("not recently changed although its folder has just changed")
	}
	if quiet.RecentlyChanged(top, after(quietTime)) {
		t.Error("recently changed although its folder is quiet")
	}
	changed(after(quietTime))
	if quiet.RecentlyChanged(top, after(quietTime)) {
		t.Error("recently changed although it is not in the way any more")
	}

	busy := Blocker{Paths: []string{"a/f"}}
	for at := time.Duration(0); at < quietMost; at += quietTime / 2 {
		changed(after(at))
		if !busy.RecentlyChanged(top, after(at)) {
			t.Errorf("after %v: not waited for", at)
		}
	}
	changed(after(quietMost))
	if busy.RecentlyChanged(top, after(quietMost)) {
		t.Error("waited for too long")
	}
}
