// Package inotify watches all folders below a folder with inotify(7), and reports in which of them something may have changed.
//
// Its reports are hints. A change through a mapping of a file, and one through a second name of a file, is not reported where it
// happens, see inotify(7). If a report could be incomplete because the kernel's queue or its watches were used up, [Tree.Touched]
// returns [ErrLost] from then on.
package inotify
