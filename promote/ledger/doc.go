// Package ledger owns the state files of promotion below an airlock's host state:
//
//	ledger          which outer commit each inner commit became, in the order of building
//	outcome.json    what the last cycle left: holds, counts, times
//	verdicts.json   what the policy gate found in commits that wait, and in landed ones with a flag
//	decisions.json  which commits the user accepted or dropped
//
// Each file has a version and is replaced as a whole, except the ledger, which grows by one synced block for each
// cycle. The refs of the airlock are the truth: a ledger entry counts as landed up to the commit that the ref
// "promoted" names, and as pending up to the commit that "pending" names. A torn last line is a crash, not an error.
//
// The package also defines [Hold], the reason why commits wait, because an outcome consists mostly of holds.
//
// # The ledger
//
// The ledger is a file to which lines are appended. A torn last line is dropped. It remembers the
// pairs, and the notes do not: notes are edited, pushed, pruned, merged from other repositories, and
// follow amended commits, so a program that reads its state from notes obeys everybody who can write
// there.
//
// Pending commits that the user took by hand are those that the branch reaches, or has reached by its
// reflog, since the user may have amended or gone back meanwhile. If the user took only one side of a
// merge, it is entered before the commit that landed last.
//
// Commits of the branch that the agent obtained itself, by a network or from the user, are their own
// images: they do not land again, and commits on top count from the newest of them or from the last
// landed commit. This is looked up only for a history that ends in the base, in a landed commit or in
// a root of its own.
package ledger
