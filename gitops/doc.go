// Package gitops is the only door to git.
//
// [Git] runs the git program with an environment that obeys nothing but what the
// caller asked for. [Repository] is the user's outer repository; it is trusted and
// seen as its user's own git sees it. [Quarantine] is a bare host-owned repository for
// objects an agent wrote. [Workspace] drives a git program *inside* a prison through a
// function the caller gives; no function here ever opens a workspace as a repository.
// [Repository.Land] moves a branch, its index and its working tree in one journaled step.
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
// # Landing
//
// A landing copies the user's index and has git write the changed files into a working tree of its own
// in the host state, with the user's smudge filters and line ends, as a checkout would. Then come the
// locks, a last check, one rename for each file, the refs, and one rename for the index. The obvious
// way, git read-tree -m -u in the user's work tree under the lock, was measured first:
//
//   - Killed, it leaves half a file. A landing of one file of 60 MB was killed after 15 to 165 ms,
//     eleven times. In four of the eight runs in which git had not finished, the file was neither old
//     nor new, and a recovery cannot know whether such bytes are the user's.
//   - It replaces ignored files silently: an ignored .env of the user's is gone when a commit adds
//     one. git merge --ff-only does the same. Here every path to be written is checked first, ignored
//     ones included.
//   - It keeps the index locked all the while, 420 ms for 2,000 files. Writing beside (140 ms),
//     renaming (120 ms) and refreshing (50 ms) keep it locked for the last two.
//
// Git reads files that are as young as the index twice, and would not find these in our working tree.
// So the new index is as old as the user's until git has read the files in the user's work tree.
// Otherwise an edit in the same second would count as committed, and the next landing would overwrite
// it. The price is room for the changed files once more. Where the host state is on another file
// system, a file is first copied beside its destination.
//
// One git update-ref --stdin transaction holds the branch, refs/airlock/<id>/* and HEAD (git locks
// HEAD together with the branch that it points to) from "prepare" on. Only then are branch, operations
// in progress, index and files checked for the last time. Then come the journal, the files and
// "commit". With the locks held, the user's git checkout and git commit wait or report a locked ref,
// so the result of the check stays true. Only git writes refs, with its own locks and reflog, in any
// ref storage.
//
// # The journal
//
// Before the first visible change a small file is written and synced: the branch, the old and the new
// commit, the other refs. The rest follows from the two commits. After a crash, a landing is finished
// if the branch has moved, and taken back if it has not. A path is written only if its bytes are those
// of the old or the new commit; otherwise recovery stops with a hold, and the journal stays. A list of
// files and their states would have to keep in step with events, which two commit ids need not.
//
// The lock on the index holds a token that is drawn once for each airlock and kept in the host state.
// The journal names the locks that git made for us with inode and time. Recovery removes a lock only
// with that proof: process ids are reused, and a user's long commit is old as well. A machine that
// loses power between the locking of the refs and the journal leaves git's own lock files, as in the
// middle of any git command. Nothing proves whose they are, so the user removes them, and git and
// git-airlock name them.
//
// AIRLOCK_TEST_KILL=<step> kills the program at a named step of a landing. Tests do so at every step
// and compare the result of the recovery with the state before or after. They taught three things.
// What enters the user's store must be whole, since git index-pack and git fast-import leave temporary
// packs behind when their input ends too early: large packs are written by git pack-objects in a
// folder of ours and renamed. A recovery needs new names for what it prepares, since the lock of one
// that was killed stopped all later ones. And merges land in portions of half a second, since merging
// hundreds of commits took longer than a user needs for the next commit, after which all of them had
// to be merged again.
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
