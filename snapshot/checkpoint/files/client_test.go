package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestErrorOutputIsBounded copies the program into a prison whose shell writes errors without end.
func TestErrorOutputIsBounded(t *testing.T) {
	flood := bytes.Repeat([]byte("x"), 1<<20)
	run := func(_ context.Context, _ []string, _ io.Reader, _, stderr io.Writer) (int, error) {
		for range 64 {
			if n, err := stderr.Write(flood); n != len(flood) || err != nil {
				return 0, errors.Join(err, io.ErrShortWrite)
			}
		}
		return 1, nil
	}
	_, err := Open(t.Context(), run, "/workspace")
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || len(err.Error()) > 2*saidLimit {
		t.Errorf("%.200v", err)
	}
}
