// Package snapshot turns the committed files of an outer branch into a fresh inner repository.
//
// [Take] copies the tree, and nothing else of the branch, into the airlock's quarantine and makes the root commit
// there. [Snapshot.Fill] passes both to a git inside the prison, which makes the inner repository from them. No
// history, remote, configuration or path of the host goes into the prison.
//
// git pack-objects writes the objects of the tree straight into the quarantine. The same pack and a root commit by
// the ghost go through a pipe, as a tar archive, to a shell inside the prison. The shell unpacks them and checks them
// out with an empty inner configuration. The outer and the inner commit have the same tree id, so that later commits
// can be carried over by their trees. The host writes nothing into the workspace, so links there cannot redirect a
// write. Unlike git archive, this applies no filter, line-end conversion, export-subst or export-ignore.
//
// # Submodules and git-lfs
//
// A submodule is an entry of the tree: the id of a commit, which is in another repository. The snapshot has the entry and
// .gitmodules, but no file of the submodule, and git makes an empty folder for it inside. No promotion reads that folder.
// A pattern of airlock.exclude can leave the entry out. A commit that adds, moves or removes a submodule is held by the
// rule "submodule". If the user accepts such a commit, the landing makes an empty folder, which git submodule update fills.
//
// The tree contains only a pointer for a file of git-lfs, and so does the workspace: no filter runs inside, and git-lfs
// stores the content outside of the tree. In a landing, the user's git-lfs fills such files (package gitops/land). A file
// that the agent replaces by other content is committed with that content, unless the agent has set up git-lfs inside.
//
// # Cost
//
// For 22,590 files, git add and git commit hash everything again, which takes 2.9 s of 8.1 s. From the pack, the same
// step takes 0.8 s of 5.5 s. Hard links would be five times faster, but an agent that writes in place would write
// into the user's files. Alternates would show the agent the whole object store.
//
// A start on 2,000 loose files takes 430 ms, and took 557 ms before two changes. A third of the gain comes from
// MALLOC_TRIM_THRESHOLD_: without it, glibc returns the memory for each object's compression to the kernel, and
// pack-objects has 41,000 page faults instead of 4,600. The rest comes from doing independent things at the same
// time. The remaining parts are 60 ms for the pack, 50 ms for the checkout inside, and 80 ms for the search for
// secrets on the other processor.
package snapshot
