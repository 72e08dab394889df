// Package walls restricts a container of any engine: the system call filter, hidden files of the kernel, and the limits of processes.
//
// The filter is Docker's own default profile (github.com/moby/profiles/seccomp), made stricter. Begin reading at [Profile].
package walls
