// Package userhook adds one line to a hook of the user's repository, and removes it.
//
// A hook belongs to the user, so nothing else of the file changes: after [Place.Remove] the file has the same bytes and the same mode as before
// [Place.Install]. The line comes directly after the first line, because hooks often end with exit or exec.
//
// A file is only changed if the line works in it, and if the file is the user's own. A hook in the work tree is a file of the tree: changing it
// would make an uncommitted change, and the commits of an agent can change it as well. A link can lead to a file that other repositories use. In
// these cases the error is an [Unsuitable], and the user adds the line by hand.
package userhook
