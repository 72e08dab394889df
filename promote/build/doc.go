// Package build makes outer-ready commits of what a plan lists: the messages and author dates of the inner commits,
// the user's identity, parents mapped one by one, and trees that are the inner ones or three-way merges with the
// user's own changes. Everything is made in a bridge, so that nothing is visible and all of it can be thrown away.
//
// With p1 the first parent of an inner commit c and p1' its image, the tree of c's image is
// merge(tree(p1); tree(p1'), tree(c)); equal parents give tree(c) itself, without a merge. An unclean merge ends
// the building there: [Built.Stopped]. If nothing could be built on the branch, the commits are built apart from the
// user's own, for the user to merge.
package build
