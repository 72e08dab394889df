// Package gitops is the only door to git.
//
// [Git] runs the git program with an environment that obeys nothing but what the
// caller asked for. [Repository] is the user's outer repository; it is trusted and
// seen as its user's own git sees it. [Quarantine] is a bare host-owned repository for
// objects an agent wrote. [Workspace] drives a git program *inside* a prison through a
// function the caller gives; no function here ever opens a workspace as a repository.
// Package land moves a branch, its index and its working tree in one journaled step.
//
// Methods called Look only look. Methods called Change change something and are refused
// on a Git that was opened for a dry run.
//
// # The quarantine
//
// The quarantine is a bare repository that holds the objects of the snapshot and the exported ones,
// and borrows nothing. The base commit is stored in it as well, and the file shallow names that
// commit. An agent may name any object, but only what it brought, or was given, counts as connected:
// with the outer store as an alternate, a tree entry with the id of a private blob would be "complete"
// and land. Because of the shallow boundary, outer-ready commits, which have the base as their parent,
// are built, walked and packed inside the quarantine, before anything enters the user's store.
//
// Sizes are weighed before anything is listed, each tree and each pair of trees once: a kilobyte of
// nested empty folders stands for 10^10 paths and is held after 1.3 s in 20 MB. An export that takes
// longer than a second is asked for the sizes in its objects' headers. Those are the agent's claim and
// not a check, so a lie only brings back the bounds of index-pack. An export that took long to refuse
// is left alone for five times as long (1.5 GB of zeros: 1.1 s instead of 69 s).
//
// # Packs, notes and the index
//
// Git has no command that stores many ready objects: hash-object -w takes one process for each, and
// fast-import makes commits itself. So a pack writer of 40 lines hands objects to unpack-objects or
// index-pack: 0.2 s for 1,000 commits, and 1.7 s more with a process for each. Up to 100 objects are
// unpacked into loose ones, as git fetch does, lest many small packs slow the user's git down.
//
// A landing of one commit takes 11 git processes; it took 26, of 2 to 4 ms each:
//
//   - One walk proves connectivity, types and sizes: for each new commit, the entries that no parent
//     has at the same path. Beyond a million objects git rev-list does it. The walk is repeated over
//     the built commits in the bridge. Concluding its result from the first walk was tried, and missed
//     trees that another part had completed, so that a branch lacked a tree.
//   - Built commits and notes stay in memory until they are handed over together.
//   - Notes trees are written here, with subfolders as git reads them beyond 256 notes. git
//     fast-import reads all existing notes first; this costs the same with 5,000 notes as with none.
//   - Changes enter the index by update-index and checkout-index, unless the checkout is sparse,
//     attributes change or the user hid a path. read-tree -m walks both trees whole: 28 ms of
//     processor time for 20,000 files, instead of 7.
//   - Independent reads run at the same time, and many commits are judged on all processors.
//   - Nothing grows with the number of landed commits: the ledger stays in memory while its file is
//     unchanged, and the quarantine's packs are joined geometrically, after the landing.
package gitops
