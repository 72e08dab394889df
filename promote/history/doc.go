// Package history decides which inner commits are built, on which commits, and which commits they replace. A [Plan]
// depends only on values: the commits that have not landed, the ledger, the user's decisions, and two graphs that
// report which commits reach which. The package reads no object, ref or file, so that tests can plan random histories
// without git.
//
// Let F be the newest landed commit of the inner first-parent history, or the root if none of its commits has landed.
// The commits after F are new. If F is not the commit that landed last, the agent has rewritten its history. The
// first new commit then still goes on top of the last landed one, and supersedes the landed commits that it undoes.
package history
