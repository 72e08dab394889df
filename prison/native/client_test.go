//go:build linux

package native_test

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/native"

	"golang.org/x/sys/unix"
)

// TestReadAfterDeadline checks that output is read even if the deadline for reading has passed before the first try.
func TestReadAfterDeadline(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	io.WriteString(w, "the end")
	r.SetReadDeadline(time.Now().Add(-time.Second))
	buf := make([]byte, 100)
	if n, err := r.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d, %v", n, err)
	}
	if n, err := native.ReadAnyway(r, buf); err != nil || string(buf[:n]) != "the end" {
		t.Errorf("%q, %v", buf[:max(0, n)], err)
	}
	if n, err := native.ReadAnyway(r, buf); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("of an empty pipe: %d, %v", n, err)
	}
	w.Close()
	if n, err := native.ReadAnyway(r, buf); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %d, %v", n, err)
	}
}
