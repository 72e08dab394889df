// Package docker makes prisons out of containers, through the API of a Docker engine on this machine. Begin reading at
// Start in lifecycle.go.
//
// # Objects on the engine
//
// A prison is one container and one volume. The volume survives [Backend.Stop]. It contains the home and the prison's account
// files, which are mounted over those of the image's /etc. On Podman the account files are in a second volume, a copy of the
// image's /etc. All of these objects have a random key as a label, which the host state stores; their names are only for
// people. The file system of the image is read-only; /tmp, /run and the like are in memory. A prison made by [Backend.Open] is
// a second, short-lived container, whose first process reads its standard input. When the caller ends, for any reason, this
// input ends, and the engine removes the container.
//
// # Rooms
//
// This package plans, makes and removes the objects of a prison on an engine. Package dialect connects to the
// engine and determines its abilities, image manages images, inside runs the commands in a container, and walls
// restricts a container.
//
// # Processes
//
// The first process is a shell that waits and reaps orphans. Its uid is not the agent's, so that the agent cannot
// send it signals or use ptrace(2) on it. The engine's own init would end as soon as the agent kills the process
// below it. The engine executes commands, each through a few lines of shell. These lines look the command up (for the
// statuses 126 and 127), print their process id, which the API does not report, and become the command. A command is
// killed together with everything in its session.
//
// The engine passes the terminal of a command to its client only when it starts the command. For a launched command, a
// process of this program on the host, the keeper, holds the terminal: see Reexec in package inside.
//
// # Programs
//
// If root asks for a record of programs, each command begins with a small program of package containers, through which a process on the
// host gets the command's listener. All commands go through [inside.Container], so no command begins without that program. The programs
// that the first process executes to check the image, before there is a command, are not recorded.
//
// # Network
//
// The engine gives a container no network. A network is an interface, tap(4), whose other end is a descriptor of
// a process on the host, as for a native prison: see package egress. A helper container, which joins the container's
// network for a moment, makes the interface. Only the helper has the capability for that, the device, and a socket
// over which it passes the descriptor out. It makes its system calls from a list, so that none of our programs must run
// in the image. A process of this program on the host, the network's keeper, keeps a duplicate of the descriptor. If
// the process with the packets is killed, the keeper starts a successor. Until then nothing changes inside, and no
// packet leaves. The keeper ends with the container. If the keeper was killed, or somebody else has restarted the
// container, no packet leaves until the airlock's daemon (see [Backend.Mend]) or the next command starts another
// keeper, which takes over the existing interface.
//
// A runtime with a network stack of its own takes the interfaces that it finds when it starts, and their addresses.
// For such a runtime another container, which only waits, has the network, and the agent's container joins that
// network. If somebody else restarts the agent's container, it has no network until the prison is stopped and started.
//
// # Ownership
//
// On disk, the workspace and the content of the home's volume belong to the phantom. For root, this process changes the
// owner. For a member of the group docker the engine changes it: it unpacks an archive with only those folders into a
// container that never runs. A container that has only the workspace removes the workspace's files from inside, with programs of the
// prison's image. If that image is gone or has no shell, it is a container with this program alone.
//
// # Weaker and stronger than native
//
//	wall                                      effect                                                   what remains if it fails
//	phantom uid on the disk                   the host's files and processes are another user's        mounts and pid namespace show none of them
//	read-only image, one bind mount, memory   only the workspace of the host is visible                uids
//	no capability, no new privileges          the agent cannot mount, trace or regain anything         the system call filter
//	Docker's filter, made stricter            rarely used calls are closed, and set-id bits, which     the two above
//	                                          would be on the host's disk, too
//	no network, or an interface whose         no way to other machines, a cloud's credentials, or this the engine has no route, bridge or address
//	other end is one of our processes         machine's own addresses                                  that leads out
//	control groups                            memory, processor and processes are limited              reported as weaker
//	masked files in /proc and /sys            the machine, and what others do on it, are hidden        these files give information, but no access
//	a limit of one byte for core dumps        the host's program for dumps, which runs as root, is     -
//	                                          never started
//	runsc                                     system calls end in gVisor's kernel, not in the host's   gVisor's own confinement
//
// A user who may use the engine is root. A container under runc shares the kernel, like a native prison. The first processes of
// all prisons have the same uid outside, so a host process with the uid of nobody can end a prison, as root can. The path of
// the workspace can be read in mountinfo: a native prison hides it with an overlay given by descriptors, which no engine offers.
// For the same reason tools and other roots are refused. Podman does not accept paths with a colon, so it cannot hide PCI buses.
//
// The exporter beside a container is a native prison, where namespaces are available. A native exporter costs a
// tenth, and commits land even while the engine is stopped, killed or frozen. Beside a runtime with a kernel of its
// own the exporter is a second container: git runs the agent's filters there, and a native exporter would run them
// on the host's kernel.
//
// The agent's home is measured in a container that has the volume read-only and ends with its caller. The agent's
// own container would be quicker, but the agent could falsify the result. If the image lacks du, find or wc, the home
// cannot be measured; the daemon's log reports this, and the growth of the disks counts instead.
//
// A start may be killed at any moment. The next start or clear removes everything that it left, since the random
// key is stored before any object is made. If the workspace of a running container was removed, the daemon or the
// next start removes the container. The container's own mount shows whether the workspace was removed or only
// moved. An engine that was killed can forget a command that it was starting. Where the processes of the engine are visible, stop,
// start and clear end the processes that are left in the container's control group, even if the group is frozen.
//
// # gVisor and Podman
//
// The same code drives both, and they pass the same suite. The code asks the engine about these differences:
//
//	                       gVisor (--runtime runsc)                                 Podman 4.3
//	system calls           its kernel's own: set-id bits, user namespaces and       the filter is read from a file of the host state
//	                       some refused calls exist inside; weaker
//	limit of processes     set inside, as root, in a group of its kernel; outside   by group, and by uid
//	                       four times as many and 512, since its kernel
//	                       ends at that limit
//	too much memory        ends the whole prison; weaker                            as Docker
//	account files          ours                                                     if the image does not know the first process's uid,
//	                                                                                its own hide ours: we use a uid that it knows
//	environment            ours                                                     we remove "container" and HOSTNAME
//	killed container       the engine may not report it: we ask every 3 seconds     as Docker
//	network                in a container that only waits, see above                as Docker
//	memory file systems    as Docker                                                cannot have an owner: sticky and open to all
//	a new volume           as Docker                                                is filled from the image at the first start
//	open files             as Docker                                                by default more than it may have: we set our limit
//	after a command        nothing stays                                            conmon (1 MB) stays for five minutes, see
//	                                                                                exit_command_delay in containers.conf
//
// A start is refused with exit status 5 for three kinds of engines: those without root, since their phantoms would have
// another uid on the disk; those with userns-remap, since the archives that the engine unpacks cannot be excluded from
// the mapping; and those on other machines.
//
// # Cost
//
// For root, a container's prison takes 0.98 times as long as a plain container with a command in it, and for an
// ordinary user 1.2 to 1.5 times. visit -- true takes 0.8 to 1.1 times as long as docker exec
// (scripts/bench-prison). A start makes two calls, as a plain docker run -d does. For root, this process writes
// accounts, home and ownership to the disk. For other users it sends one archive (75 ms, since the engine runs itself
// again for it) into a container that never starts (35 ms). The first process reports whether the image has git and a
// shell, since a separate command for that took 65 ms. A volume with a copy of the image's /etc took 250 ms. While the
// container starts, the host's git fills the workspace in a native prison, where that is possible.
package docker
