package runs

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	promoted "github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/record"
)

// TestGitDoesNotEnd makes the parts of a record that git reads, with a git that does not end in time. The record says what it lacks. If
// the command itself is ended, the record is not made.
func TestGitDoesNotEnd(t *testing.T) {
	defer func(before time.Duration) { gitTime = before }(gitTime)
	w := gitopstest.New(t)
	tip := w.CommitAll(gitopstest.Files{"a": "1\n"})
	read := func(ctx context.Context) (*gathering, error) {
		g := &gathering{Keeper: Keeper{Prisons: prisons.Prisons{Repo: w.Repository}}, files: map[string][]byte{}, about: map[string]record.File{}, absent: map[string]string{}}
		g.landed = []promoted.Pair{{Inner: tip, Outer: tip}}
		lines := []record.Commit{{State: record.Landed, Inner: tip, Outer: tip}}
		return g, errors.Join(g.timely(ctx, "the subjects", func(ctx context.Context) error { return g.describe(ctx, lines) }), g.changes(ctx))
	}
	g, err := read(t.Context())
	if err != nil || len(g.visibility) > 0 || len(g.absent) > 0 || len(g.files[record.ChangesName]) == 0 {
		t.Errorf("in time: %v, %q, %q, %d files", err, g.visibility, g.absent, len(g.files))
	}
	gitTime = time.Nanosecond
	g, err = read(t.Context())
	if want := []string{"git did not read the subjects within 1ns"}; err != nil || !slices.Equal(g.visibility, want) {
		t.Errorf("late: %v, %q, want %q", err, g.visibility, want)
	}
	if got, want := g.absent[record.ChangesName], "git did not write them within 1ns; the commits have them"; got != want {
		t.Errorf("late: %q, want %q", got, want)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if g, err = read(ended); !errors.Is(err, context.Canceled) || len(g.visibility)+len(g.absent) > 0 {
		t.Errorf("ended: %v, %q, %q", err, g.visibility, g.absent)
	}
}
