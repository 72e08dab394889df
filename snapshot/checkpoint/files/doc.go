// Package files lists, reads and writes the files of a workspace from inside a prison. Begin reading at [Client] and [Serve].
//
// Serve runs inside, as the phantom, and a Client on the host. A client sends requests through the standard input of the
// process inside, and reads the answers from its standard output. The process inside opens every file from the
// descriptor of its folder, one name at a time, and follows no symbolic link. So it reads and writes nothing outside the
// workspace, even if an agent changes the workspace meanwhile. The walls of the prison guarantee this, and the
// descriptors guarantee it once more. openat2(2) would do the same in one call, but no filter of system calls can see
// its flags, so prisons refuse it.
//
// The client treats the answers as hostile, since the agent has chosen all names and contents: it checks and limits
// sizes, counts and names.
package files
