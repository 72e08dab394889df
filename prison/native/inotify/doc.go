// Package inotify watches all folders below a folder with inotify(7), and reports in which of them something may have changed. Begin
// reading at [Watch].
//
// The reports are hints. A change through a mapping of a file is not reported, and one through a second name of a file only in the folder
// with that name. If the kernel's queue or its watches are used up, so that a report could be incomplete, [Tree.Touched] returns
// [ErrLost] from then on.
package inotify
