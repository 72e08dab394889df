package calls

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/git-airlock/git-airlock/prison"
)

// hostile is a prison whose agent writes without end where the runner's output is read, and stops the process that
// removes the runner.
type hostile struct {
	prison.Prison
	written int
	removal error
}

func (h *hostile) Exec(ctx context.Context, p prison.Process) (int, error) {
	switch p.Argv[0] {
	case "sh":
		_, err := io.WriteString(p.Stdout, "/tmp/program\n")
		return 0, err
	case "rm":
		<-ctx.Done()
		h.removal = ctx.Err()
		return 0, ctx.Err()
	}
	for ctx.Err() == nil && h.written < 100<<20 {
		n, err := p.Stdout.Write(bytes.Repeat([]byte{1}, 1<<20))
		if err != nil {
			return 0, err
		}
		h.written += n
	}
	if kept, ok := p.Stdout.(*prison.Capped); !ok || len(kept.Bytes()) > maxOutput {
		return 0, errors.New("all of it is kept")
	}
	return 0, nil
}

// TestHostileAgent makes calls while the agent interferes in every way. Make must return an error about the results.
func TestHostileAgent(t *testing.T) {
	if ownRunner() == nil {
		t.Skip("no program for this processor")
	}
	synctest.Test(t, func(t *testing.T) {
		h := &hostile{}
		_, err := Make(t.Context(), h, []Call{{Number: 39}})
		if err == nil || err.Error() != "65536 bytes of results for 1 calls" {
			t.Errorf("made: %v", err)
		}
		if !errors.Is(h.removal, context.DeadlineExceeded) {
			t.Errorf("removed: %v", h.removal)
		}
	})
}
