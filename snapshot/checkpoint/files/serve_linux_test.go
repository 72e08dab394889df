package files

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestListWhileReplaced lists a folder while a program replaces it by a file, and removes both. Each answer must be valid: after an
// invalid one, the client ends the process inside.
func TestListWhileReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "folder")
	done, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			default:
			}
			os.Mkdir(path, 0o700)
			os.Remove(path)
			os.WriteFile(path, nil, 0o600)
			os.Remove(path)
		}
	}()
	defer func() {
		close(done)
		<-stopped
	}()
	c := Start(t.Context(), func(_ context.Context, _ []string, in io.Reader, out, _ io.Writer) (int, error) {
		return 0, Serve(dir, in, out)
	})
	defer c.Close()
	found, missing := 0, 0
	for n := 0; n < 3000 || n < 100000 && (found == 0 || missing == 0); n++ {
		err := c.List([]string{"folder"}, n%2 == 0, func(int, Entry) error { found++; return nil }, func(int, string) { missing++ })
		if err != nil {
			t.Fatalf("after %d lists: %v", n, err)
		}
	}
	if found == 0 || missing == 0 {
		t.Errorf("the folder was there %d times, and missing %d times", found, missing)
	}
}
