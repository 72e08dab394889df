// Package promote turns an agent's commits into landed commits on the user's branch.
//
// An [Engine] makes promotion cycles for one airlock. A cycle is a pipeline of values. No stage changes
// the value of another one, with one exception: the ledger in facts grows, since its owner adds what was built, delivered and
// landed. Plan, built and judged may be made several times, and the last ones count.
//
//	facts      settings, refs, ledger and the inner tip, read at the same time (survey.go)
//	taken      the inner commit that the quarantine holds completely and has accepted (receive.go)
//	           (before plan, carryVerdicts passes the verdicts on replaced commits to the amended ones. It writes the
//	           user's decisions, which are right whether or not the cycle goes on; review.go)
//	plan       which commits are built, on which commits, and which they replace (package history; pure)
//	built      outer commits: same tree, message and author date, the user's identity (package build)
//	judged     which of them may land, and why the others wait (judge.go; package policy). Plan, built and judged are
//	           made again without held commits, at most 20 times, as long as others stand without them (cycle.go)
//	delivered  objects, notes, also those with verdicts, and state files outside, not named by a ref yet (deliver.go)
//	landed     the branch, the work tree and the refs after the landing (land.go)
//
// The results of the stages before the landing can be discarded at any moment. The landing is one journaled step of
// package gitops/land. Commits that cannot land wait as pending, and a [ledger.Hold] gives the reason.
//
// Package ledger reads and writes the state files. Package daemon decides when cycles are made.
//
// # Trees, not patches
//
// Commits are carried over by their trees, since mail cannot carry a commit. To show this, the newest commits of six
// public repositories were sent through git format-patch and git am with the best flags found (-k --binary
// --full-index --always --pretty=mboxrd --no-signature; -k --keep-cr --empty=keep --no-scissors):
//
//	first-parent history of   commits  am stopped  wrong tree             messages changed  lost words
//	age                           370           1  0                                    98           1
//	libgit2                       600           0  0 (368 without flags)               552           0
//	lazygit                       600           0  8, exit status 0                    523          11
//	git                           600           0  0                                     0           0
//	git-town                      600           0  0                                   591           0
//	vim                           600           0  0                                    12          12
//
// Other findings:
//
//   - A message can carry code. am has no mark between message and patch: a line "---", "diff --git" or
//     "Index:" in a message ends it, and the text that follows is applied. One message, written in good
//     faith, made the eight wrong trees. A "From:" line replaces the author.
//   - Merges are lost: format-patch drops 301 of the last 971 commits of libgit2, and the rest stopped
//     after 89 patches.
//   - The inner configuration steers format-patch: diff.noprefix or diff.context=0 stop am,
//     format.coverLetter adds a commit. The user's apply.whitespace=fix changes trees.
//   - It is not atomic. A stop leaves half the batch on the branch and an am in progress in the user's
//     repository.
//   - On a diverged branch a patch can land in the wrong one of several equal blocks, with exit status
//     0.
//   - Whitespace at the end of messages, carriage returns, encodings and lines like a mail signature
//     are rewritten.
//
// 1,000 commits, from inner objects to the user's work tree, against git fetch of the same objects:
//
//	way                                                    2,137 files  22,590 files       exact
//	git fetch                                                     1.00  1.00               -
//	trees, commits in one pack                                    1.08  1.02               yes
//	diffs fed to fast-import                                      1.14  1.25               yes
//	fast-export | fast-import                                     2.75  -                  yes
//	a three-way tree merge for each commit, git spawned           3.9   -                  yes
//	format-patch | am, best flags, one process                    3.9   5.7 (200 commits)  no
//	fetch and cherry-pick                                         6.0   4.7 (200 commits)  author lost
//	format-patch | am, each commit by itself                     12.4   14.5 (200 commits) no
//
// The user's object store grows by 13 MB with packs, and by 110 MB with the loose objects of am. For a single commit,
// all ways cost the same, since updating the work tree dominates.
//
// A property test compares the engine with a model of the contract. Its random histories grow, are rewritten, and
// meet the user's commits. The test found two errors that no real history shows: two inner commits that differ only
// in the committer's date became one, and a second "tree" header, which git ignores, was obeyed.
//
// The engine "patch" checks trees and builds none. It sends the change of each commit through git format-patch and
// git am, in a repository and a working tree of its own, onto the tree that the parent has outside. A constant
// replaces the message, so that no message can be taken for a patch, and the repository's attributes undo the
// attributes in the tree. If the result differs from the result of the tree engine, the commit is held, with the
// message of am. Merges and empty commits are built by the tree engine alone, since a mail cannot carry them.
//
// # Pending and notes
//
// Waiting commits are stored, noted and named by refs/airlock/<id>/pending in one transaction. They land in a later
// transaction, which removes pending. Commits that can land at once are not made pending first, which saves one
// transaction and two syncs (5 ms). Their notes are in the transaction that moves the branch, and come before the
// branch: git moves the refs of a transaction one after the other, in order. Recovery moves the notes back or the
// branch forward. If such a landing fails, the commits become pending. A note that is written after the branch would
// leave a window that no lock closes. A user who merges pending commits by hand finds their notes in the repository.
//
// # Moved and copied repositories
//
// The record and the native prison's state identify their folder by inode and birth time. A move on the file system
// keeps both, and a copy has others. The device number can change with a reboot and does not count. So the original
// is recognised wherever it is, and a copy in its place touches neither the daemon nor the prison of the original. A
// copy continues with the airlock only if no prison of it runs, as after a backup was restored. If the lock is taken
// and no visible process holds it, the holder is in another pid namespace or on another host. Then status reports a
// running daemon, and stop and clear refuse.
//
// Once its worktree is gone, an airlock belongs to its branch, since git worktree remove does not ask git-airlock.
// The record names the worktree by git's id, which survives a move, and by its last path. The daemon's working
// directory is the top of the work tree, so that the kernel knows the new path. When git forgets the id, the daemon
// ends the prison, and the next command in a worktree with that branch takes the airlock over. A workspace that git
// could not remove is used at its old place. If the workspace is lost, start makes a new one from the quarantine. An
// airlock without worktree, workspace and pending commits is removed by the next clear that finds no airlock of its
// own.
//
// # Excluded and included files
//
// With airlock.exclude the tree of the inner root lacks the excluded files. Before anything is built from an inner
// tree, these files are put back into it from the base, in place of anything that the agent has at their paths.
// Merging them back would not work. Pending commits that wait for a conflict are built without the user's commits, so
// a user who fast-forwards to them would lose the files. A file that the agent makes at such a path would conflict
// with a file that the agent never saw.
//
// With .worktreeinclude untracked files are copied into the workspace. Everybody who can commit can write that list,
// including the agent, so it needs consent to its name and content. The digest is computed over its line in a list of
// sha256sum(1), which no recipe can have. The files are named in the inner .git/info/exclude. If the agent commits
// one by force, it collides with the user's own file, which is a hold. A .env file is never copied.
package promote
