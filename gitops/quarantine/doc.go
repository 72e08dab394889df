// Package quarantine holds the objects that an agent wrote, and hands those that were accepted to the outer repository.
//
// [Store] is a bare repository of the host's. [Inspector] reads its objects, which [Inspector.History] and [Inspector.Walk] prove
// to be complete and within the limits. [Bridge] sees both stores: it makes the commits that are ready for the outer repository,
// and [Bridge.Give] hands them over in a pack, which [Handover] keeps until a ref reaches it.
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
// # Who reads objects
//
// git cat-file can read every object, and is the reference. In front of it, go-git reads in process what SHA-1 names. What a head
// says of the size of an object, of a delta and of its result is compared with a limit before anything is inflated; what is beyond
// it, chains of more than 16 MB of deltas, damage and panics are left to git. Until 2026-11-23 a reader of our own, of 600 lines, was
// in go-git's place. Milliseconds of processor time, two busy processors:
//
//	                                            our own   go-git   git cat-file
//	one commit of 100 files (BenchmarkReaders)      0.3      0.6            2.6
//	300 commits of 100 files                         18       25             92
//	git airlock promote of one commit, 100 files    127      126            139
//	git airlock promote of 200 commits, with gate   722      764            815
//	SHA-256, one commit, 100 files                  115        -            126
//
// The index of a pack is read here, because go-git reads all of it before it finds one object: 2 ms for 20,000 objects.
//
// # Packs, notes and the index
//
// Git has no command that stores many ready objects: hash-object -w takes one process for each, and
// fast-import makes commits itself. So a pack writer of 40 lines hands objects to unpack-objects or
// index-pack: 0.2 s for 1,000 commits, and 1.7 s more with a process for each. Up to 100 objects are
// unpacked into loose ones, as git fetch does, lest many small packs slow the user's git down.
//
// # Few processes
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
package quarantine
