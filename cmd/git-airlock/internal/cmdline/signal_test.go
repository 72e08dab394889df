package cmdline

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// TestBySignal checks the exit statuses of errors with and without a ^C. If a ^C breaks a pipe, the exit status is that of the ^C.
func TestBySignal(t *testing.T) {
	broken, other := fmt.Errorf("start: %w", syscall.EPIPE), errors.New("start")
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(ended{syscall.SIGINT})
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{interrupted, broken, 130}, {interrupted, context.Canceled, 130}, {interrupted, other, 1}, {interrupted, nil, 0},
		{t.Context(), broken, 1}, {t.Context(), Shown(ErrUnread), 141},
	} {
		if got := ExitStatus(bySignal(c.ctx, c.err)); got != c.want {
			t.Errorf("%v, %v: exit status %d, want %d", context.Cause(c.ctx), c.err, got, c.want)
		}
	}
}
