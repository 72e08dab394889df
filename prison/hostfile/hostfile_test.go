package hostfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/git-airlock/git-airlock/prison/hostfile"
)

// TestReplace writes concurrently. A reader must get one complete content, and no other file may stay.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	var got string
	if err := hostfile.Read(path, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := hostfile.Write(path, strings.Repeat(string(rune('a'+i)), 5000)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := hostfile.Read(path, &got); err != nil || len(got) != 5000 || strings.Trim(got, got[:1]) != "" {
		t.Errorf("%v: %.20q", err, got)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestRunning writes a file about processes, and reads a file that a power loss has left empty.
func TestRunning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	var got string
	if err := errors.Join(hostfile.WriteRunning(path, "old"), hostfile.WriteRunning(path, "new"), hostfile.ReadRunning(path, &got)); err != nil || got != "new" {
		t.Errorf("%q, %v", got, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := hostfile.ReadRunning(path, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty file: %v", err)
	}
	if err := hostfile.Read(path, &got); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty file that should be durable: %v", err)
	}
}

// TestFailure checks that the old content stays if the new one cannot be written, and that an error names the broken file.
func TestFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	if err := hostfile.Write(path, make(chan int)); err == nil {
		t.Error("a channel was written")
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var v any
	if err := hostfile.Read(path, &v); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("half a file: %v", err)
	}
}
