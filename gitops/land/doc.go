// Package land moves a branch of the user's repository, its index and its working tree to a commit, in one journaled step.
//
// [Land] makes a landing, and [Recover] finishes one that a crash cut short, or takes it back. A landing overwrites nothing that
// the user has not committed: it fails with a [CollisionError] first.
//
// # Landing
//
// A landing copies the user's index and has git write the changed files into a working tree of its own in the host state, with the user's smudge
// filters and line ends, as a checkout would. Then come the locks, a last check, one rename for each file, the refs, and one rename for the index.
// The obvious way, git read-tree -m -u in the user's work tree under the lock, was measured first:
//
//   - Killed, it leaves half a file. A landing of one file of 60 MB was killed after 15 to 165 ms, eleven times. In four of the eight runs in
//     which git had not finished, the file was neither old nor new, and a recovery cannot know whether such bytes are the user's.
//   - It replaces ignored files silently: the user's ignored .env is gone when a commit adds one. git merge --ff-only does the same. Here every
//     path to be written is checked first, ignored ones included.
//   - It keeps the index locked all the while, 420 ms for 2,000 files. Writing beside (140 ms), renaming (120 ms) and refreshing (50 ms) keep it
//     locked for the last two.
//
// The user can save a file between the last check and the rename, and a large commit makes this time long. So a new file is exchanged
// with the one in its place, a file to be removed is moved to the host state, and a path that was free must still be free (renameat2(2)).
// Then the landing looks at the file that it has displaced. If this is not the file of the check, it gets its place back, and the landing
// is taken back and fails with a [CollisionError]. Displaced files are kept until the index is in place, and are looked at twice more,
// before the refs move and before they are removed, since an editor may write into a file that it had opened before. What a program
// writes into such a file later is lost, as with git checkout. Where the file system cannot exchange files, a landing checks each file
// immediately before its rename.
//
// Git reads files that are as young as the index again, and would not find them in our working tree. So the new index keeps the time of the user's
// index until it has the stat data of the files in the user's work tree. Otherwise an edit in the same second would count as committed, and the
// next landing would overwrite it. The landing writes the stat data itself, as git checkout does for its own files: git add --refresh took 14 ms
// for three of 20,000 files, under all locks, and ran clean filters. The landing also makes the changes in the index itself, where git
// update-index took 10 ms, and lets git write the files according to an index that contains only them. If only git can read the index, such as a
// split one, git does all this. The price is room for the changed files once more. If the host state is on another file system, a file is first
// copied beside its destination.
//
// One git update-ref --stdin transaction holds the branch, refs/airlock/<id>/* and HEAD (git locks HEAD together with the branch that it points
// to) from "prepare" on. Only then are branch, operations in progress, index and files checked for the last time. Then come the journal, the files
// and "commit". With the locks held, the user's git checkout and git commit wait or report a locked ref, so the result of the check stays true.
// Only git writes refs, with its own locks and reflog, in any ref storage.
//
// Some git commands take the lock of the index several times. git stash, for example, first removes untracked files and then restores the index. If
// a landing took the lock in between, git stash would fail half-way. On Linux a landing therefore looks for such a command in /proc immediately
// before it takes the lock, and once more afterwards. Without this, every sixth git stash of 200 files beside landings failed half-way.
//
// git commit reads the index before it takes the lock. If a landing came in between, git commit would write the old index back, and the user's next
// commit would revert the landed one. A landing therefore does not begin while a git commit runs, and keeps the lock until no git commit runs.
//
// # The journal
//
// Before the first visible change a small file is written and synced: the branch, the old and the new
// commit, the other refs. The rest follows from the two commits. After a crash, a landing is finished
// if the branch has moved, and taken back if it has not. A path is written only if its bytes are those
// of the old or the new commit; otherwise recovery stops with a hold, and the journal stays. A list of
// files and their states would have to keep in step with events, which two commit ids need not.
//
// A displaced file that has the bytes of neither commit is the user's. Recovery puts it back in its place. If something else is there by
// now, the file gets a name beside it that ends in .mine.
//
// The lock on the index holds a token that is drawn once for each airlock and kept in the host state. The journal names the locks that git made
// for us with inode and time. Recovery removes a lock only with that proof: process ids are reused, and a user's long commit is old as well. A
// machine that loses power between the locking of the refs and the journal leaves git's own lock files, as in the middle of any git command.
// Nothing proves whose they are, so the user removes them, and git and git-airlock name them.
//
// AIRLOCK_TEST_KILL=<step> kills the program at a named step of a landing (package killpoint). Tests do so at every step
// and compare the result of the recovery with the state before or after. They taught three things.
// What enters the user's store must be whole, since git index-pack and git fast-import leave temporary
// packs behind when their input ends too early: large packs are written by git pack-objects in a
// folder of this program and renamed. A recovery needs new names for what it prepares, since the lock of one
// that was killed stopped all later ones. And merges land in portions of half a second, since merging
// hundreds of commits took longer than a user needs for the next commit, after which all of them had
// to be merged again.
package land
