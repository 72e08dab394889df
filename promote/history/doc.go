// Package history decides which inner commits are built, on which commits, and which commits they replace. A [Plan]
// depends only on values: the commits that have not landed, the ledger, the user's decisions, and two graphs that
// report which commits reach which. The package reads no object, ref or file, so that tests can plan random histories
// without git.
//
// Let F be the newest landed commit of the inner first-parent history, or the root if none of its commits has landed.
// The commits after F are new. If F is not the commit that landed last, the agent has rewritten its history. The
// first new commit then still goes on top of the last landed one, and supersedes the landed commits that it undoes. If it has only left out
// commits with which the landed ones did not land, the rebased forms of those count as landed, too: see [ledger.Ledger.AddRebased].
//
// If the user has promoted other inner branches than main, each of these lines counts for itself: its new commits count from F, and supersede the landed
// commits of the same line that its tip does not reach any more. What other lines have landed stays, also if it is the same change in another
// commit, such as a squash: see [Plan.KeepShared]. What main has landed leaves the branch once main drops it, also if another line is built on it: an
// amended commit of main would conflict with its former one otherwise. A merge of two lines does not bring again what the branch has of both. Main is
// one of the lines then.
//
// # Partial landing
//
// A rule may hold a commit, or the user drops it. [Plan.Walk] finds the later commits that stand without it. For each commit
// after the first one that waits, it merges three trees: the base is the tree of the commit's first parent, ours is the tree of
// the commits that stand so far, and theirs is the commit's tree. If the merge is clean and not empty, the commit stands.
// Otherwise it is blocked, and the walk goes on without it. The walk uses inner trees only, so that its result does not depend
// on the user's commits. If commits were left out before F landed, the walk begins with the tree of F without their changes.
//
// The commits that stand are built first. The others are set aside: they are built on top of them, in the agent's order,
// each with its own change. The ledger keeps the commits that were left out when others landed, so that they are still
// planned when the inner history behind them has landed. Those of them that may land now are built before the new commits: nothing
// can be put before what has landed, and all that lands together is in the agent's order.
//
// If the agent has gone back to such a history, and all its new commits need one that was left out, that one lands first, on top of the
// other history. The new commits are postponed: the first of them must undo the other history, and one that is set aside undoes nothing.
package history
