// Package files lists, reads and writes the files of a workspace from inside a prison.
//
// [Serve] runs inside, as the phantom, and [Client] outside. A client sends requests through the standard input of the
// process inside, and reads the answers from its standard output. The process inside reaches every file from the
// descriptor of its folder, one name at a time, and follows no symbolic link. So whatever an agent does to the workspace
// meanwhile, nothing outside the workspace is read or written: the walls of the prison are the first reason, and the
// descriptors the second. openat2(2) would do the same in one call, but no filter of system calls can see its flags,
// so prisons refuse it.
//
// The client treats the answers as hostile, since the agent wrote all names and contents: sizes, counts and names are
// bounded and checked.
package files
