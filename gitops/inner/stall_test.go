package inner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// stalledBox stands for an exporter in which git runs for two minutes, if nobody ends it: what its processes look like, and
// what find finds.
func stalledBox(stat func() string, found string) Workspace {
	return Workspace{Dir: "/workspace", Run: func(ctx context.Context, p Process) (int, error) {
		switch p.Argv[0] {
		case "git":
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Minute):
			}
			return -1, ctx.Err()
		case "find":
			_, err := io.WriteString(p.Stdout, found)
			return 0, err
		}
		_, err := io.WriteString(p.Stdout, stat())
		return 0, err
	}}
}

// statOf is a line of /proc/PID/stat, see proc_pid_stat(5).
func statOf(name, state string, ticks int) string {
	return fmt.Sprintf("7 (%s) %s 1 7 7 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0\n", name, state, ticks)
}

func TestStallIsEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ found, want string }{
		"with what it waits for":         {"/workspace/.git/HE\x1bAD\x00", `.git/HE\u001bAD`},
		"though that is gone by now":     {"", "does nothing"},
		"though a name cannot be a name": {"/workspace/" + strings.Repeat("x", 2*nameLimit), "does nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := stalledBox(func() string { return statOf("sh", "R", 9) + statOf("git", "S", 3) }, c.found)
			begun := time.Now()
			_, err := box.Branches(t.Context())
			if refused := new(Invalid); !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if c.found != "" && c.want != "does nothing" && time.Since(begun) > lookTime {
				t.Errorf("it took %s", time.Since(begun))
			}
		})
	}
}

// TestSlowWorkIsNotAStall lets git be slow for longer than a stall may take.
func TestSlowWorkIsNotAStall(t *testing.T) {
	t.Parallel()
	ticks := 0
	for name, stat := range map[string]func() string{
		"it computes":          func() string { ticks++; return statOf("git", "S", ticks) },
		"it waits for a disk":  func() string { return statOf("git", "D", 3) },
		"nobody can tell":      func() string { return "" },
		"another process does": func() string { return statOf("git", "S", 3) + statOf("git", "R", 3) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), (stallTicks+3)*stallTick)
			defer cancel()
			err := stalledBox(stat, "/workspace/.git/fifo\n").Pack(ctx, gitops.OID(strings.Repeat("1", 40)), nil, io.Discard)
			if refused := new(Invalid); errors.As(err, &refused) || ctx.Err() == nil {
				t.Errorf("it was ended: %v", err)
			}
		})
	}
}
