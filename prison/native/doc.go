// Package native makes prisons out of Linux namespaces, with no daemon, image or helper program
// beside the calling program itself.
//
// # Processes
//
// The program runs itself again in roles, which begin as soon as this package is ready, before main:
//
//   - the keeper, a detached session leader outside, holds the lock of the prison for its whole
//     life, writes down what a launched command shows and cleans up at the end;
//   - the builder, the first process in new user, mount, pid, net, uts and ipc namespaces, builds
//     the file system, gives up every privilege, and executes
//   - init, PID 1 inside, which runs processes on request.
//
// Requests reach init through a socket that the keeper made and handed in, so neither the keeper
// nor anything else on the host parses what the agent writes. Nobody ever joins the namespaces:
// init starts every process and passes the ends of its pipes, or its terminal, out.
//
// An open network adds the relay, which stands on the host between an interface inside and a program
// that makes ordinary connections of packets, slirp4netns(1) or passt(1). Every packet passes it, so what
// it refuses (loopback, link-local addresses) nobody inside can reach whatever they do to their sockets.
//
// A prison made by Open has no keeper: init is a child of the caller, and a socket pair whose end
// of file is its end.
//
// # Privileges
//
// The user namespace maps one uid and one gid, the phantom's, to themselves. Root writes that map
// itself; everybody else needs newuidmap(1) with a range in /etc/subuid. The builder keeps its
// capabilities across execve(2) as ambient ones, as its uid is not mapped yet. It works on one
// locked thread and ends in execve, since Linux keeps credentials per thread and the Go runtime can
// change those of all threads only in programs without cgo.
package native
