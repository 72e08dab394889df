// Package quarantine stores the objects that an agent wrote, and copies accepted objects to the outer repository.
//
// [Store] is a host-owned bare repository. [Inspector] reads its objects, and [Inspector.History] and [Inspector.Walk] check
// that they are complete and within the limits. [Bridge] reads both stores. It creates the commits for the outer repository,
// and [Bridge.Give] copies them in a pack, which [Handover] keeps until a ref reaches it.
//
// # The quarantine
//
// The quarantine is a bare repository that holds the objects of the snapshot and the exported ones,
// and has no alternates. The base commit is stored in it as well, and the file shallow names that
// commit. An agent may name any object, but only exported objects and those of the snapshot count:
// with the outer store as an alternate, a tree entry with the id of a private blob would be "complete"
// and land. Because of the shallow boundary, built commits, which have the base as their parent,
// are made, walked and packed inside the quarantine, before anything enters the user's store.
//
// Sizes are computed before anything is listed, once for each tree and each pair of trees: a kilobyte of
// nested empty folders describes 10^10 paths and is held after 1.3 s in 20 MB. If an export takes
// longer than a second, the sizes in its objects' headers are checked. The agent writes these headers, so
// a wrong size only means that the limits of index-pack apply. After an export that took long to refuse,
// the next one waits five times as long (1.5 GB of zeros: 1.1 s instead of 69 s).
//
// # Readers of objects
//
// git cat-file can read every object, and is the reference. go-git reads SHA-1 objects in process. The sizes of an object, of a
// delta and of its result are compared with a limit before anything is inflated. Larger objects, chains of more than 16 MB of
// deltas, and objects with which go-git fails or panics are read by git. Until 2026-11-23 our own reader of 600 lines was
// used instead of go-git. Milliseconds of processor time, two busy processors:
//
//	                                            our own   go-git   git cat-file
//	one commit of 100 files (BenchmarkReaders)      0.3      0.6            2.6
//	300 commits of 100 files                         18       25             92
//	git airlock promote of one commit, 100 files    127      126            139
//	git airlock promote of 200 commits, with gate   722      764            815
//	SHA-256, one commit, 100 files                  115        -            126
//
// Our own code reads the index of a pack, because go-git reads all of it before it finds one object: 2 ms for 20,000 objects.
//
// # Packs and notes
//
// Git has no command that stores many finished objects: hash-object -w needs one process for each, and
// fast-import makes commits itself. So package packing passes packs to unpack-objects or
// index-pack: 0.2 s for 1,000 commits, and 1.7 s more with a process for each. Up to 100 objects are
// unpacked into loose ones, as git fetch does, because many small packs would slow the user's git down.
//
// # Few processes
//
// A landing of one commit takes 11 git processes; it took 26, of 2 to 4 ms each:
//
//   - One walk proves connectivity, types and sizes: for each new commit, the entries that no parent
//     has at the same path. Beyond a million objects git rev-list does it. The walk is repeated over
//     the built commits in the bridge. Concluding its result from the first walk was tried, and missed
//     trees that another part had completed, so that a branch lacked a tree.
//   - New commits and notes stay in memory until they are copied together.
//   - Notes trees are written here, with subfolders as git reads them beyond 256 notes. git
//     fast-import reads all existing notes first; this costs the same with 5,000 notes as with none.
//   - Independent reads run at the same time, and many commits are checked on all processors.
//   - Nothing grows with the number of landed commits: the ledger stays in memory while its file is
//     unchanged, and the quarantine's packs are joined geometrically, after the landing.
package quarantine
