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

// Waiting returns the pending commits that the user has merged, or fast-forwarded to. These are the commits that the branch reaches, or has
// reached before the user reset the branch or amended a commit. Several such moves may have happened since the last cycle. The commits need not
// be consecutive: the user may have taken one side of a pending merge without the other. onLine reports whether the last of them is on the line
// that lands.
func (b Branch) Waiting(ctx context.Context) (taken []ledger.Pair, onLine bool, err error) {
	if len(b.Ledger.Tail) == 0 || b.still() {
		return nil, false, nil
	}
	past, err := b.Repo.PastBesides(ctx, b.Name, ownMoves)
	if err != nil {
		return nil, false, err
	}
	left, err := b.Repo.Unreached(ctx, []gitops.OID{b.Pending}, append(past, b.Tip))
	if err != nil {
		return nil, false, err
	}
	for _, t := range b.Ledger.Tail {
		if !slices.Contains(left, t.Outer) {
			taken = append(taken, t)
		}
	}
	if len(taken) == 0 {
		return nil, false, nil
	}
	steps, err := b.Repo.Steps(ctx, b.Promoted, b.Pending)
	return taken, newestLast(taken, func(t ledger.Pair) bool { return slices.Contains(steps, t.Outer) }), err
}

// newestLast moves the newest commit that is on the line that lands to the end of taken, because the next landing continues from the last one.
// It reports whether there is such a commit.
func newestLast(taken []ledger.Pair, onLine func(ledger.Pair) bool) bool {
	for i, t := range slices.Backward(taken) {
		if onLine(t) {
			copy(taken[i:], taken[i+1:])
			taken[len(taken)-1] = t
			return true
		}
	}
	return false
}
