package attest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// Backlog is the landed commits of one airlock that have no statement yet. An agent can land 20,000 commits in some seconds, and statements about
// them take more than a minute, so a Backlog makes them in batches. It does not hold the lock of cycles between two batches: an undo, a stop and
// a landing go first.
type Backlog struct {
	Attester
	Left int // after Some: the number of listed commits that may have no statement yet

	state string   // of the airlock when the commits were listed, see mark
	list  []string // the commits that have no statement yet, oldest first
	facts *facts   // about these commits
	made  []string // the other listed commits
}

const (
	// batchSize is the number of commits whose statements are made at once. The daemon has little memory.
	batchSize = 200
	// mostLooked is the number of batches of listed commits that are read for one batch of statements.
	mostLooked = 5
	// batchPause is the pause between two batches. A process that waits for the lock tries to take it every 2 ms.
	batchPause = 20 * time.Millisecond
)

// Some makes the statements about the next landed commits, at most batchSize. It waits for no cycle if it finds no commit without a statement.
func (b *Backlog) Some(ctx context.Context) error {
	if b.Left = 0; b.none() {
		return nil
	}
	if s, err := readState(b.dir()); err != nil {
		return err
	} else if err := b.renew(ctx, s); err != nil || len(b.list)+len(b.made) == 0 {
		return err
	}
	return b.locked(ctx, func(s *state) error { return b.next(ctx, s) })
}

// all makes the statements about all landed commits.
func (b *Backlog) all(ctx context.Context) error {
	const what = "making statements about landed commits"
	step, end := b.Begin(what)
	defer end()
	for {
		if err := b.Some(ctx); err != nil || b.Left == 0 {
			return err
		}
		step(what, len(b.made), len(b.made)+b.Left)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(batchPause):
		}
	}
}

// renew lists the commits, unless they are listed and the airlock's state is the same as then.
func (b *Backlog) renew(ctx context.Context, s *state) error {
	now, err := b.mark(ctx, s)
	if err != nil || now == b.state && len(b.list) > 0 {
		return err
	}
	b.state = now
	return b.read(ctx, s)
}

// mark returns a text that differs once commits have landed, were undone or got statements by another process.
func (b *Backlog) mark(ctx context.Context, s *state) (string, error) {
	tip, err := b.Repo.Ref(ctx, b.Record.Ref("promoted"))
	mark := fmt.Sprint(tip, s.Last.Commit)
	for _, name := range []string{"facts", "ledger"} {
		if info, err := os.Stat(filepath.Join(b.dir(), name)); err == nil {
			mark += fmt.Sprint(info.Size(), info.ModTime())
		}
	}
	return mark, err
}

// next makes one batch of statements.
func (b *Backlog) next(ctx context.Context, s *state) (err error) {
	if err := b.renew(ctx, s); err != nil {
		return err
	}
	b.state = ""
	before, made := s.Last, false
	// Commits beside the last one may have statements: a merge has several lines of commits before it.
	for looked := 0; len(b.list) > 0 && !made && looked < mostLooked; looked++ {
		group := b.list[:min(len(b.list), batchSize)]
		if err := b.group(ctx, s, group); err != nil {
			return err
		}
		made = s.Last != before
		b.list, b.made = b.list[len(group):], append(b.made, group...)
	}
	if b.Left = len(b.list); b.Left > 0 {
		b.state, err = b.mark(ctx, s)
		return err
	}
	if len(b.made) == 0 {
		return nil
	}
	err = b.forget(b.facts, b.made)
	*b = Backlog{Attester: b.Attester}
	return err
}

// read lists the commits that landed in this session after the last one with a statement, oldest first. Before these, it lists the landed commits
// of which the host state still has facts: the ref promoted does not reach them any more if the user has squashed, amended or rebased them.
func (b *Backlog) read(ctx context.Context, s *state) error {
	tip, err := b.Repo.Ref(ctx, b.Record.Ref("promoted"))
	if err != nil {
		return err
	}
	args := []string{"rev-list", "--topo-order", "--reverse", "--ignore-missing", b.Record.Ref("promoted"), "^" + string(b.Record.Base)}
	if s.Last.Commit != "" {
		args = append(args, "^"+string(s.Last.Commit))
	}
	text, err := b.Repo.Output(ctx, args...)
	if err != nil {
		return err
	}
	known, err := b.readFacts(tip)
	if err != nil {
		return err
	}
	if b.facts != nil {
		known.incomplete = b.facts.incomplete
	}
	reached := strings.Fields(text)
	listed := gitops.SetOf(slices.Concat(reached, b.made)...)
	older := slices.DeleteFunc(gitops.Names(known.landed), func(id string) bool { return listed[id] })
	b.list, b.facts = append(older, reached...), known
	return nil
}

// group makes the statements about those of some commits that the airlock landed.
func (b *Backlog) group(ctx context.Context, s *state, group []string) error {
	commits, err := b.Repo.Noted(ctx, "", group, "--no-walk=unsorted") // the notes can be somebody else's
	if err != nil {
		return err
	}
	commits = slices.DeleteFunc(commits, func(n gitops.Noted) bool {
		_, ours := b.facts.entries[n.ID] // the ref promoted may also reach others
		return !ours
	})
	if len(commits) == 0 {
		return nil
	}
	return b.attest(ctx, s, commits, b.facts)
}
