// Package ledger reads and writes the state files of promotion in an airlock's host state:
//
//	ledger          the outer commit of each inner commit, in the order in which they were built
//	outcome.json    the result of the last cycle: holds, counts, times
//	gate.json       the policy gate's findings in waiting commits, and in landed commits with a flag
//	decisions.json  the commits that the user accepted or dropped
//	rebased         the inner commits that are rebased forms of landed ones, with these
//	facts           what the notes on commits without evidence said when they were written
//
// Each file has a version and is replaced as a whole. The ledger and the facts are exceptions: each cycle appends one synced
// block to them. The airlock's refs decide which entries count. An entry counts as landed up to the commit that the ref
// "promoted" names, and as pending up to the commit that the ref "pending" names. A torn last line is left by a crash
// and is not an error.
//
// The package also defines [Hold], a reason why commits wait, because an outcome consists mostly of holds.
//
// # The ledger
//
// The ledger, not the notes, maps inner commits to outer ones. Users edit, push and prune notes, merge notes of other
// repositories, and git copies notes to amended commits. A program that read its state from notes would obey
// everybody who can write notes.
//
// A user can also merge or rebase pending commits by hand. The engine recognizes such commits because the branch
// reaches them, or has reached them according to its reflog: the user may have amended a commit or reset the branch
// meanwhile. If the user took only one side of a merge, its entry is inserted before the commit that landed last.
//
// An entry can name earlier inner commits with a leading "-". They were left out when the entry's commit was built. If they
// land later, their entries have the word "aside": the agent's next commits do not count from them.
//
// The user can promote another inner branch than main. The entry then names this line with "from=": the next commits of main do not count from it, and
// an absence there undoes nothing. Each line undoes its own landed commits when it is rewritten. Once main has had the commit, the entry has the
// word "joined", and the commit is one of main's. Entries of older versions have neither word, and are main's.
//
// The agent can obtain commits of the user's branch by itself, from a network or from the user. Such a commit is its
// own image and does not land again. The changes of the commits on top of it count from the newest such commit, or
// from the last landed commit. The engine looks for such commits only in a history that ends in the base, in a landed
// commit or in a root of its own.
package ledger
