// Package build makes outer commits of the commits that a plan lists. An outer commit has the message and the author
// date of the inner commit and the user's identity. Its parents are the images of the inner parents. Its tree is the
// inner tree, or a three-way merge with the user's own changes. Everything is made in a bridge, so that nothing is
// visible and all of it can be discarded.
//
// Let p1 be the first parent of an inner commit c, and p1' the image of p1. The tree of c's image is merge(base: tree(p1),
// ours: tree(p1'), theirs: tree(c)). If the trees of p1 and p1' are equal, it is tree(c) itself, without a merge. A merge with
// conflicts ends the building there: [Built.Stopped]. If nothing could be built on the branch, the commits are built apart, for the user to
// merge: on the newest commit of the branch on which they do not conflict, or on the oldest one with the agent's lines where they conflict. None of
// their parents is newer than that commit: otherwise the user's merge would remove what the branch has gained between the two. If that
// commit has a part of a change already, git does not merge this part, although the branch may have lost it. Such a commit is used only if there is no
// other one. Then the hold and the merge name the paths: [Conflict.Lacks].
//
// The branch may lack commits that were left out when others landed. If a new commit conflicts or is empty there, its change is also tried on
// its parent's tree without the changes of those commits. If the change does not apply there either, the commit needs them or takes them back.
// Then the building stops, and the commit is set aside: [Conflict.Lacking].
//
// If a commit that was left out lands after all, it is on top of the landed commits that follow it inside, and their images still lack it. A side
// branch that begins at one of those begins at the image of the former, if it conflicts otherwise.
//
// The trees of a plan are the agent's: they lack the user's changes, and have those of commits that were left out before. So a commit that is
// built after one that waits is also merged with its own change alone, from the tree of its inner parent. If that conflicts, it is set aside, too.
//
// A commit that was set aside is built on top of the others: its tree is the merge of its change since its first parent
// with the tree of the outer commit before it. If it was left out when others landed, and may land now, it is built in this way before the
// new commits, unless it conflicts there. If it conflicts, the cause is a dropped commit only if its change does not apply to the agent's own trees
// without the dropped commits before it: see [Trees.Needs]. Otherwise the user can merge it.
//
// Newer commits of the agent can be on the branch before one that was set aside. If they change lines that the older commit changes, its change is
// the difference that it makes to the newest of them, in the agent's own trees. So a line that the older commit takes back, and that a newer one
// has made again, stays. This also holds for commits that are built apart: the user's merge comes after the newer ones. Newer commits that change other paths or lines cost no merge. If there are too many others, the older commit waits.
package build
