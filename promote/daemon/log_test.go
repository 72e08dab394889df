package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestDaemonLogIsBounded checks that a daemon's log is bounded while the daemon runs, and keeps the latest messages.
func TestDaemonLogIsBounded(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "log")
	file, err := OpenLog(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	line := append(bytes.Repeat([]byte("x"), 4095), '\n')
	for range 3 * logLimit / len(line) {
		if _, err := (BoundedLog{file}).Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (BoundedLog{file}).Write([]byte("the last\n")); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > logLimit+len(line) || !bytes.HasSuffix(content, []byte("\nthe last\n")) || content[0] == 0 {
		t.Errorf("%d bytes, the last of them %q", len(content), content[max(0, len(content)-20):])
	}
}

func TestLastError(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]string{
		"":                             "",
		"panic: x\nexit 2\n":           "exit 2",
		"airlock: a\nairlock: b\n":     "b",
		"began\nairlock: a\nhint: b\n": "a",
	} {
		if got := lastError(log); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}
