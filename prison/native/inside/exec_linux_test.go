package inside

import (
	"errors"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWorkingDirectory checks that the error for a working directory has one cause.
func TestWorkingDirectory(t *testing.T) {
	if _, _, err := find("true", "/no/such/folder", nil); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a folder that does not exist: %v", err)
	}
	if _, _, err := find("true", "/dev/null", nil); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a file: %v", err)
	}
}
