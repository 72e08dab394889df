// Package outgoing finds the commits of agents that a push would send, and the verdicts on them.
//
// A commit is an agent's if refs/notes/airlock has a note on it. One that was rejected, undone, dropped or built again has lost its
// note, unless a ref of the user had it. A verdict in refs/notes/airlock-review, or a ref, an operation or a ledger of an
// airlock here, still names it as an agent's. If the user has amended or rebased such a commit, git
// keeps the note only with notes.rewriteRef, and its Airlock-Commit then names the original. Without the note, the
// original is found by the author with date, which an amend, a rebase and a cherry-pick keep, together with tree and parents,
// or else with the subject. A verdict on the original counts for the new commit: what the user changed since then is the
// user's own work. A commit of which the user has changed both the message and the content is the user's own, and so is a
// squash without notes. The date alone would not do: a script can commit in the second of an agent's commit.
//
// An agent can give several commits the same author, date and subject, and git joins the notes of squashed commits. Unless the same
// change of the same files tells which one is the original, each that can be must be approved.
//
// A commit that the user reverts needs no verdict, as long as the revert is pushed with it.
//
// The newest verdict of those who count decides. The user counts, and so do the reviewers whom the team's policy names.
// The name in a line is a claim: everybody who can push the notes can write any name.
package outgoing
