// Package walls holds what closes a container of any engine: the filter of system calls, the files of the kernel that
// nobody can read, and the limits of its processes.
//
// The filter is Docker's own default profile (github.com/moby/profiles/seccomp), made stricter by [Profile].
package walls
