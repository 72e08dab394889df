// Package history decides which inner commits are built, on what, and in the place of which. A [Plan] follows from
// values alone: the commits that have not landed, the ledger, the user's decisions, and two graphs that say which
// commits reach which. Nothing here reads an object, a ref or a file, so that random histories test it without git.
//
// Let F be the newest commit of the inner first-parent history that has landed (else the root). The commits after F
// are new. If F is not the last one that landed, the agent has rewritten its history: the first new commit then
// goes on top of the last landed one all the same, and supersedes the landed commits that it undoes.
package history
