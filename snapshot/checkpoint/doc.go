// Package checkpoint stores states of a workspace, and restores them exactly. Begin reading at [Store.Take] and [Store.Plan].
//
// A checkpoint contains the contents, names, types, modes, modification times and link targets of all files, also of untracked
// and ignored ones, of empty folders, and of the inner repository's folder. It does not contain processes, devices, pipes, sockets or
// extended attributes, nor which names are hard links to the same file. It has the number of files that this concerns, see [Taken].
//
// The store is a separate bare git repository in the host state. The user's repository is not used, since it should contain neither
// ignored secrets nor names that git refuses. The commit at refs/checkpoints/N has the trees files, meta and git. The tree files has the
// contents, without the inner repository's folder. The tree meta has a list for each folder, with modes and times of the folder and of
// its files, so that unchanged folders are stored once. The tree git has the same two trees for the inner repository's folder. Names
// that git refuses are escaped. The id of files and meta together, and the id of git, identify a state.
//
// A process that makes many checkpoints keeps the last state in a [Recent], and lists only the folders in which a change was reported.
// The ids are the same as those of a whole walk, unless a program changes a file through a mapping, or through a descriptor of an
// unnamed file. The kernel does not report these changes, but the next whole walk finds them, since ctime changes.
//
// All files are read and written inside a prison, see package files. A file whose ctime is unchanged is not read again, unless it was
// read so soon after a change that the next change could have had the same ctime. Before a restore every file is read again, because a
// program that has mapped a file into its memory can change it without a new ctime.
package checkpoint
