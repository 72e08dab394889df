// Package docker makes prisons out of containers, through the API of a Docker engine on this machine.
//
// # What there is on the engine
//
// A prison is one container with a volume: its home, which survives [Backend.Stop], and beside it the prison's accounts, which are
// mounted over those of the image's /etc. On Podman these are in a second volume, a copy of the image's /etc. An open network adds a
// bridge of the prison's own. All of them carry a random key as a label, which the host state remembers: names are for people. The file system of
// the image is read-only; /tmp, /run and the like are memory. A prison made by [Backend.Open] is a second,
// short-lived container, whose first process reads its standard input: the caller's end, whatever
// ends it, is the end of that file, and the engine removes the container.
//
// # Processes
//
// The first process is a shell that waits: it reaps orphans, and as another uid than the agent's it is out of reach for
// signals and ptrace(2). An init of the engine's own would end as soon as the agent kills the process below it. Commands are
// executed by the engine, each through a few lines of shell that look it up (for 126 and 127), tell its
// process id, which the API does not, and become it. A command is killed with everything in its session.
//
// The engine hands out a command's terminal only while it starts it. For a launched command a process of ours on the
// host, the keeper, holds it: see [Reexec].
//
// # Ownership
//
// The workspace belongs to the phantom on the disk, and so does what is in the home's volume. Root makes it so; for a member of the
// group docker the engine does, by unpacking an archive that has nothing but those folders in it into a container that
// never runs. Removal is done inside, by a container that has nothing but the workspace.
//
// # What comes from elsewhere
//
// seccomp.json is the default profile of Docker (github.com/moby/profiles, Apache-2.0); [profile] makes it stricter.
package docker
