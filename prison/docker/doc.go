// Package docker makes prisons out of containers, through the API of a Docker engine on this machine.
//
// # Objects on the engine
//
// A prison is one container and one volume. The volume survives [Backend.Stop]. It contains the home and the prison's account
// files, which are mounted over those of the image's /etc. On Podman the account files are in a second volume, a copy of the
// image's /etc. All of these objects have a random key as a label, which the host state stores; their names are only for
// people. The file system of the image is read-only; /tmp, /run and the like are in memory. A prison made by [Backend.Open] is
// a second, short-lived container, whose first process reads its standard input. However the caller ends, this input ends with
// it, and then the engine removes the container.
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
// send it signals or use ptrace(2) on it. An init of the engine's would end as soon as the agent kills the process
// below it. The engine executes commands, each through a few lines of shell. These look the command up (for 126 and
// 127), report their process id, which the API does not report, and become the command. A command is killed
// together with everything in its session.
//
// The engine passes out the terminal of a command only while it starts the command. For a launched command, a
// process of this program on the host, the keeper, holds the terminal: see Reexec in package inside.
//
// # Programs
//
// If root asks for a record of programs, each command begins with the entrance of package containers, which lets a process on the host
// take its listener. All commands go through [inside.Container], so that none begins without it. What the first process executes to
// check the image, before there is a command, is not recorded.
//
// # Network
//
// The engine gives a container no network. A network is an interface, tap(4), whose other end is a descriptor of
// a process on the host, as for a native prison: see package egress. To make it, a helper container joins the
// container's network for a moment. It is the only one with the capability for that, the device, and a socket over
// which it passes the descriptor out. It makes its system calls from a list, so that no program of ours has to fit
// the image. A process of this program on the host, the network's keeper, keeps a duplicate of the descriptor, and
// starts a successor for a process that was killed. Nothing changes inside meanwhile, and no packet leaves. The keeper
// ends with the container. If the keeper was killed, or somebody else has restarted the container, the network leads
// nowhere until the airlock's daemon (see [Backend.Mend]) or the next command starts another keeper, which takes the
// interface as it is.
//
// A runtime with a network stack of its own takes the interfaces that it finds when it starts, and their addresses.
// For such a runtime another container, which only waits, has the network, and the agent's container joins it. If
// somebody else restarts the agent's container, it has no network until the prison is stopped and started.
//
// # Ownership
//
// On disk, the workspace and the content of the home's volume belong to the phantom. Root changes the owner itself.
// For a member of the group docker the engine does so: it unpacks an archive with only those folders into a
// container that never runs. Files are removed from inside, by a container that has only the workspace.
//
// # Weaker and stronger than native
//
//	layer                                     keeps                                                    if it fails
//	phantom uid on the disk                   the host's files and processes belong to somebody else   mounts and pid namespace show none
//	read-only image, one bind mount, memory   nothing of the host to see but the workspace             uids
//	no capability, no new privileges          nothing to mount, trace or regain                        the filter of system calls
//	Docker's filter, made stricter            what few programs use; set-id bits on the host's disk    the two above
//	no network, or an interface whose         other machines, a cloud's credentials, and this          no route, bridge or address
//	other end is a process of ours            machine's own addresses                                  of the engine's leads out
//	control groups                            memory, processor, processes                             weaker, and reported
//	masked files in /proc and /sys            the machine, and what others do on it                    they inform, and give nothing
//	a limit of one byte for core dumps        the host's program for dumps, which runs as root         -
//	runsc                                     the host's kernel: calls end in gVisor's                 gVisor's own confinement
//
// A user who may use the engine is root. A container under runc shares the kernel, like a native prison. The first processes of
// all prisons have the same uid outside, so a host process with the uid of nobody can end a prison, as root can. The path of
// the workspace can be read in mountinfo, since no engine offers the overlay by descriptors that hides it in a native prison.
// For the same reason tools and other roots are refused. Podman does not accept paths with a colon, so PCI buses are visible
// there.
//
// The exporter beside a container is a native prison, where namespaces are available. A native exporter costs a
// tenth, and commits land even while the engine is stopped, killed or frozen. Beside a runtime with a kernel of its
// own the exporter is a second container: git runs the agent's filters there, and a native exporter would run them
// on the host's kernel.
//
// The agent's home is measured in a container that has the volume read-only and ends with its caller. The agent's
// own container would be quicker, but the agent could falsify the result. An image without du, find and wc cannot
// be measured; the daemon's log reports this, and the growth of the disks counts instead.
//
// A start may be killed at any moment. The next start or clear removes everything that it left, since the random
// key is stored before any object is made. If the workspace of a running container was removed, the daemon or the
// next start removes the container. The container's own mount shows whether the workspace was removed or only
// moved. An engine that was killed can forget a command that it was starting. Where the processes of the engine are visible, stop,
// start and clear end what the container's control group still has, also if it is frozen.
//
// # gVisor and Podman
//
// Both are driven by the same code and pass the same suite. The code queries the engine for these differences:
//
//	                       gVisor (--runtime runsc)                                 Podman 4.3
//	system calls           its kernel's own: set-id bits, user namespaces and       the filter is read from a file of the host state
//	                       some refused calls exist inside; weaker
//	limit of processes     in its own control group, as root inside; outside        by group, and by uid
//	                       four times as many and 512, since that limit
//	                       ends its kernel
//	too much memory        ends the whole prison; weaker                            as Docker
//	accounts               ours                                                     mounts its own over ours for a uid that the image
//	                                                                                does not know: the first process has a known one
//	environment            ours                                                     "container" and HOSTNAME are taken out
//	killed container       the engine may never report it: asked every 3 seconds    as Docker
//	network                in a container that only waits, see above                as Docker
//	memory file systems    as Docker                                                have no owner: sticky and open to all
//	a new volume           as Docker                                                is filled from the image at the first start
//	open files             as Docker                                                asks for more than it may have: as many as we have
//	after a command        nothing                                                  conmon (1 MB) for five minutes, see
//	                                                                                exit_command_delay in containers.conf
//
// Some engines are refused with exit status 5: engines without root, since their phantoms would have another uid on
// the disk; engines with userns-remap, since the archives that the engine unpacks cannot be excluded from the
// mapping; and engines on other machines.
//
// # Cost
//
// For root, a container's prison takes 0.98 times as long as a plain container with a command in it, and for an
// ordinary user 1.2 to 1.5 times. visit -- true takes 0.8 to 1.1 times as long as docker exec
// (scripts/bench-prison). A plain docker run -d is two calls, and so is a start of ours. Root writes accounts, home
// and ownership to the disk itself. Other users send one archive (75 ms, for which the engine runs itself again)
// into a container that never starts (35 ms). The first process reports whether the image has git and a shell,
// since a separate command for that took 65 ms. A volume with a copy of the image's /etc took 250 ms. While the
// container starts, the host's git fills the workspace in a native prison, where that is possible.
package docker
