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
// # Weaker and stronger than native
//
//	layer                                     keeps                                                    if it fails
//	phantom uid on the disk                   the host's files and processes belong to somebody else   mounts and pid namespace show none
//	read-only image, one bind mount, memory   nothing of the host to see but the workspace             uids
//	no capability, no new privileges          nothing to mount, trace or regain                        the filter of system calls
//	Docker's filter, made stricter            what few programs use; set-id bits on the host's disk    the two above
//	no network, or a bridge of its own        other machines, and a cloud's credentials                -
//	control groups                            memory, processor, processes                             weaker, and reported
//	masked files in /proc and /sys            the machine, and what others do on it                    they inform, and give nothing
//	a limit of one byte for core dumps        the host's program for dumps, which runs as root         -
//	runsc                                     the host's kernel: calls end in gVisor's                 gVisor's own confinement
//
// Whoever may use the engine is root. A container under runc shares the kernel, like a native prison.
// All first processes have the same uid outside, so a host process of nobody can end a prison, as root
// can. With an open network, services on all of the host's addresses are reached through the bridge:
// shutting that needs rules in the host's firewall. A bridge without an address (inhibit_ipv4) has no
// way out either, and the isolated gateway of newer engines is for internal networks. The workspace's
// path can be read in mountinfo: no engine can be told to make the overlay by descriptors that hides
// it natively. For the same reason tools and other roots are refused. Podman cannot be told paths with
// a colon, so PCI buses are visible there.
//
// The exporter is native beside a container, where there can be namespaces: it costs a tenth, and
// commits land while the engine is stopped, killed or frozen. Beside a runtime with a kernel of its
// own the exporter is a second container, since git obeys the agent's filters there, and a native one
// would run them on the host's kernel.
//
// The agent's home is measured in a container that has the volume read-only and ends with its caller.
// The agent's own container would be quicker, and the agent could answer. An image without du, find
// and wc cannot be measured; the daemon's log says so, and the growth of the disks counts instead.
//
// A start that is killed at any moment leaves nothing that the next start or clear does not remove:
// the random key is written down before anything is made. A running container whose workspace was
// removed is swept up by the daemon or by the next start; its own mount tells it from one that was
// moved.
//
// # gVisor and Podman
//
// Both are driven by the same code and pass the same suite. Differences are asked of the engine:
//
//	                       gVisor (--runtime runsc)                                 Podman 4.3
//	system calls           its kernel's own: set-id bits, user namespaces and       the filter is read from a file of the host state
//	                       some refused calls exist inside; weaker
//	limit of processes     in its own control group, as root inside; outside        by group, and by uid
//	                       four times as many and 512, since that limit
//	                       ends its kernel
//	too much memory        ends the whole prison; weaker                            as Docker
//	accounts               ours                                                     lays its own over ours for a uid that the image
//	                                                                                does not know: the first process has a known one
//	environment            ours                                                     "container" and HOSTNAME are taken out
//	killed container       the engine may never report it: asked every 3 seconds    as Docker
//	memory file systems    as Docker                                                have no owner: sticky and open to all
//	a new volume           as Docker                                                is filled from the image at the first start
//	open files             as Docker                                                asks for more than it may have: as many as we have
//	after a command        nothing                                                  conmon (1 MB) for five minutes, see
//	                                                                                exit_command_delay in containers.conf
//
// Refused with exit status 5: engines without root, whose phantoms would be others on the disk;
// userns-remap, since the archives that the engine unpacks cannot be taken out of the map; and engines
// on other machines.
//
// # Cost
//
// As root, a container's prison takes 0.98 times a plain container with a command in it, as an
// ordinary user 1.2 to 1.5 times; visit -- true takes 0.8 to 1.1 times docker exec
// (scripts/bench-prison). A plain docker run -d is two calls, and so is ours. Root lays accounts, home
// and ownership on the disk itself. Everybody else sends one archive (75 ms, for which the engine runs
// itself again) into a container that never starts (35 ms). The first process reports whether the
// image has git and a shell, since a command for it took 65 ms. A volume with a copy of the image's
// /etc took 250. The workspace is filled while the container starts, by the host's git in a native
// prison, where that is possible.
package docker
