package far

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFar does with a path that the system does not accept what package os does with a short one.
func TestFar(t *testing.T) {
	for name, below := range map[string]string{"short": "d/e", "long": strings.Repeat(strings.Repeat("d", 200)+"/", 40) + "e", "short names": strings.Repeat("d/", 2100) + "e"} {
		t.Run(name, func(t *testing.T) {
			if name != "short" && runtime.GOOS != "linux" {
				t.Skip("SKIPPED: git creates no longer paths on this system")
			}
			folder := filepath.Join(t.TempDir(), below)
			ok(t, MkdirAll(folder, 0o755))
			ok(t, MkdirAll(folder, 0o755))
			a, b, link := folder+"/a", folder+"/b", folder+"/link"
			f, err := OpenFile(a, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			ok(t, err)
			_, err = f.WriteString("text")
			ok(t, errors.Join(err, f.Close()))
			then := time.Unix(1000, 0)
			ok(t, Chtimes(a, then, then))
			ok(t, Rename(a, b))
			if _, err := Lstat(a); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the old name: %v", err)
			}
			info, err := Lstat(b)
			ok(t, err)
			if !info.ModTime().Equal(then) || info.Size() != 4 {
				t.Errorf("%v, %d bytes", info.ModTime(), info.Size())
			}
			content, err := ReadFile(b)
			ok(t, err)
			ok(t, Symlink("b", link))
			target, err := Readlink(link)
			ok(t, err)
			if string(content) != "text" || target != "b" {
				t.Errorf("%q, %q", content, target)
			}
			if info, err := Stat(link); err != nil || !info.Mode().IsRegular() {
				t.Errorf("through the link: %v, %v", info, err)
			}
			if err := MkdirAll(b+"/c", 0o755); !errors.Is(err, syscall.ENOTDIR) {
				t.Errorf("a folder below a file: %.80v", err)
			}
			ok(t, Remove(link))
			ok(t, Remove(b))
			ok(t, Remove(folder))
		})
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
