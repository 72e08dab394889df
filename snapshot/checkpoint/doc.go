// Package checkpoint keeps states of a workspace, and restores them exactly.
//
// A checkpoint contains the contents, names, types, modes, modification times and link targets of all files, also of untracked
// and ignored ones, of empty folders, and of the inner repository's folder. It does not contain processes, devices, pipes,
// sockets, extended attributes, or which names are hard links to the same file; these are counted.
//
// The store is a bare git repository of its own in the host state. It is not the user's, which should contain neither ignored
// secrets nor names that git refuses. The commit at refs/checkpoints/N has the trees files, meta and git. The tree files has the
// contents, without the inner repository's folder. The tree meta has a list for each folder, with modes and times of the
// folder and of its files, so that unchanged folders are stored once. The tree git has the same two trees for the inner
// repository's folder. Names that git refuses are escaped. The id of files and meta together, and the id of git, identify a state.
//
// A process that makes many checkpoints keeps the last state in a [Recent], and looks only at the folders in which a change was reported.
// The ids are the same as those of a whole walk, unless a program changes a file through a mapping, or through a descriptor that it has
// of an unnamed file: the kernel does not report these changes. They are found by the next whole walk, since ctime changes.
//
// All files are read and written inside a prison, see package files. A file is read again only if the kernel could have
// missed a change of its ctime since it was read. Before a restore every file is read again, because a program that has mapped a
// file into its memory can change it without a new ctime.
package checkpoint
