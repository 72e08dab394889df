// Package byhand finds the agent's commits that the user has landed with plain git.
package byhand

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// ownMoves is the beginning of the message that the reflog has for each move of the branch by this program.
const ownMoves = "airlock: "

// Branch is the user's branch, and what an airlock knows about its commits.
type Branch struct {
	Repo              *gitops.Repository
	Name              string // full ref name
	Tip               gitops.OID
	Promoted, Pending gitops.OID // the airlock's refs; empty if there is none
	Ledger            *ledger.Ledger
}

// still reports whether there is nothing to find: the branch is gone, or its last move is our own, so that an earlier cycle has seen all moves
// before it.
func (b Branch) still() bool { return b.Tip == "" || b.Repo.LastMoved(b.Name, b.Tip, ownMoves) }

// Taken are commits that the user has landed by hand.
type Taken struct {
	Pairs []ledger.Pair
	// OnLine reports whether the last pair is on the line that lands, so that the next landing continues from it.
	OnLine bool
	Notes  Notes // the texts of undone commits; nil for pending ones
}

// Waiting returns the pending commits that the user has merged, or fast-forwarded to. These are the commits that the branch reaches, or has
// reached before the user reset the branch or amended a commit. Several such moves may have happened since the last cycle. The commits need not
// be consecutive: the user may have taken one side of a pending merge without the other.
func (b Branch) Waiting(ctx context.Context) (taken Taken, err error) {
	if len(b.Ledger.Tail) == 0 || b.still() {
		return taken, nil
	}
	past, err := b.Repo.PastBesides(ctx, b.Name, ownMoves)
	if err != nil {
		return taken, err
	}
	left, err := b.Repo.Unreached(ctx, []gitops.OID{b.Pending}, append(past, b.Tip))
	if err != nil {
		return taken, err
	}
	for _, t := range b.Ledger.Tail {
		if !slices.Contains(left, t.Outer) {
			taken.Pairs = append(taken.Pairs, t)
		}
	}
	if len(taken.Pairs) == 0 {
		return taken, nil
	}
	steps, err := b.Repo.Steps(ctx, b.Promoted, b.Pending)
	taken.moveNewest(func(t ledger.Pair) bool { return slices.Contains(steps, t.Outer) })
	return taken, err
}

// moveNewest moves the newest commit that is on the line that lands to the end, and sets OnLine if there is such a commit.
func (t *Taken) moveNewest(onLine func(ledger.Pair) bool) {
	for i, p := range slices.Backward(t.Pairs) {
		if onLine(p) {
			copy(t.Pairs[i:], t.Pairs[i+1:])
			t.Pairs[len(t.Pairs)-1], t.OnLine = p, true
			return
		}
	}
}
