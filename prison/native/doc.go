// Package native makes prisons out of Linux namespaces. It needs no daemon, no image, and no program except the
// calling program itself. Begin reading at Start in backend_linux.go.
//
// # Processes
//
// The program runs itself again in roles. A role begins when this package is initialised, before main:
//
//   - The keeper is a detached session leader outside. It holds the prison's lock for its whole life, writes the
//     output of a launched command to a file, and cleans up at the end.
//   - The builder is the first process in new user, mount, pid, net, uts and ipc namespaces. It builds the file
//     system, drops every privilege, and executes init.
//   - Init is PID 1 inside. It runs processes on request.
//
// Requests reach init through a socket that the keeper created and handed in, so neither the keeper nor any other
// process on the host parses what the agent writes. No process ever joins the namespaces: init starts every process
// and passes the ends of its pipes, or its terminal, out.
//
// A network adds a process outside. It holds the other end of an interface inside, and has a TCP/IP stack of
// its own (package egress, which a program that uses this package must import as well). Every packet ends in that
// process, so no program inside can reach an address that the process refuses. The process has a uid that no other
// process has, and no rights except reading a few files. Linux keeps uid and rights for each thread, and a program
// has many threads by the time package net is initialised, so they are set before the program is executed. For root,
// a thread of the keeper sets them for itself, starts the process, and ends. For an ordinary user, the relay role
// sets them in a user namespace, and then executes the program again. The process that made the prison keeps a
// duplicate of the interface's other end: if the network's process is killed, no packet leaves until its successor
// runs, and nothing changes inside.
//
// Where no TUN device can be opened, the interface is one of a pair, see veth(4). The second interface of the pair is
// in another network namespace. Instead of the device, a packet(7) socket of it reads and writes the frames.
//
// The rules, the state and the ledger are files that the network's process cannot open. The process that made the
// prison reads and writes them (package prison/egress/control).
//
// A record of programs adds another process outside, the recorder (package prison/watch/execs). Init gives its processes a
// second filter, which sends the calls that begin and end programs to a listener. Init passes the listener to the keeper,
// and the keeper passes it to the recorder. No process inside keeps it. The keeper starts a successor if the recorder ends
// or does not answer.
//
// A prison made by Open has no keeper. Its init is a child of the caller, and ends when the caller's end of a
// socket pair is closed.
//
// # Rooms
//
// This package is the host's side: the backend, the keeper, and the client of init. Package wire starts the roles and
// carries their messages. Package walls separates a prison from the host. Package inside contains the builder and
// init. Package usernet makes a network's interface and starts the process with its other end. Package inotify watches
// the folders of a workspace.
//
// # Privileges
//
// The user namespace maps the phantom's uid and gid to themselves, and a second uid for init. Root writes this map itself; other
// users need newuidmap(1) and a range in /etc/subuid. The builder keeps its capabilities across execve(2) as
// ambient ones, since its uid is not mapped yet. It works on one locked thread and ends by executing init, since Linux
// keeps credentials for each thread, and the Go runtime can change them for all threads only in programs without cgo.
//
// # Cost
//
// A start takes 19 ms (runc 28, gVisor 78, Docker 210 on the same machine), and the waiting processes take 8.5 MB:
// keeper, init and exporter. Several measures keep it that low. No package compiles a regular expression during
// initialisation. Roles start with the runtime configured for one processor. A process that was idle for two
// seconds returns its heap and the pages of the program's file, which the page cache keeps.
//
// Packages are initialised in the order of their import paths, as far as their imports allow. A role therefore
// begins before the packages that sort after this one are initialised, unless this package or its rooms import them.
// A role then starts in 2.5 ms, instead of 5.9 ms with the packages net, net/netip and runtime/debug, and three roles
// start one after the other before a prison runs. So package wire calls unix(7) itself, and does not import net.
//
// # The workspace
//
// The workspace is mounted through an overlay given by descriptors, which keeps its path out of the mount table
// inside. On disk the workspace belongs to the phantom. With an idmapped mount instead, an agent's chmod 4755 would
// make a program that is setuid to the user. The agent must be the owner, since git refuses a work tree that its
// user does not own. But the owner of a folder can open it to everybody. The daemon therefore checks the mode each
// second, and stop checks it, too: a workspace that other users can enter, or that the agent closed to itself, gets
// 0700 again. Within that second, another user who can reach the user's work tree can read and write in the workspace.
//
// Without subordinate ids, the agent of an ordinary user would have that user's uid on the host, and not a phantom's.
// So a start is refused with exit status 5 and the command that fixes this.
//
// Tools and other root file systems are overlays of two lower layers given by descriptors: our layer (empty, or
// with the files made for the prison) above the given folder. They are read-only, and mountinfo shows no path. For
// a tool that is a single file, the overlay of its folder is mounted elsewhere, the file is bound from there, and
// the rest is unmounted. The builder opens the descriptors: since about Linux 6.15 a layer must be of the mount
// namespace that mounts the overlay. Tools appear as /tools/NAME, since their path on the host often contains the
// name of their owner.
//
// # Walls
//
//	wall                                    effect                                                  what remains if it fails
//	user namespace, phantom uid             the host's files, processes and keys are another        the agent sees nothing else of the host
//	                                        user's
//	mount namespace, pivot_root             only system folders (read-only), the workspace and      Landlock refuses changes, uids other access
//	                                        a home are visible
//	pid, ipc, uts, cgroup namespaces        no process, memory, name or group of the host           no process has the phantom's uid; Landlock's
//	                                        is visible                                              scopes
//	network namespace                       only its own loopback; a network adds an interface      only Landlock's scope, for abstract sockets
//	no capabilities, secure bits,           the agent cannot mount, trace or load anything;         namespaces limit what a capability can do
//	no new privileges                       setuid programs give no rights
//	seccomp allow-list                      parts of the kernel that few programs use are closed    -
//	Landlock                                only workspace, home and scratch can be changed         mounts are read-only
//	control groups, or else rlimits         memory, processor and processes are limited; the        weaker limits are reported
//	                                        host's programs come first
//
// The allowed system calls are those of Docker's and Podman's containers without capabilities (moby/profiles), so
// the same programs work. In addition the filter refuses set-id bits in modes (a file of the workspace is on the
// host's disk), clone3 and openat2 (a filter cannot see behind their pointers, and callers fall back), sockets
// other than Unix, IP and routing netlink, typing into terminals, and changes of a program's addresses, by which the
// recorder recognizes it (prctl with PR_SET_MM). Calls that a newer kernel adds do not exist inside. 32-bit calls
// kill the process, and x32 calls do not exist. A test runs the filter on every call number.
//
// The kernel is shared: a bug in one of about 300 calls can be a way out. Caches, load and timing reveal something
// about the host. The prison does not hide that it is a namespace. scripts/test-kernel runs the tests under another
// kernel: in Debian's 6.1 nothing is weaker.
//
// # What can be done to the host without leaving
//
//   - Core dumps. The soft and the hard limit are 1. With 0 the kernel writes no file but still starts the program
//     of core_pattern, as root, with the agent's memory as input (core(5)). For setrlimit and prlimit64 of this
//     limit the filter reports success and does nothing, since gpg and ssh-agent end when they cannot set the limit
//     to 0. A hard limit of 0 that cannot be raised stays, and is reported as weaker.
//   - System files are overlays of the host's folders above an empty one. With bind mounts, inotify inside reports
//     each program that the host starts, and flock inside blocks processes outside that lock the same file. A
//     folder with mounts in it is shared in parts, since the kernel's overlay would show the files that these
//     mounts cover. Where an overlay is impossible (before Linux 5.11, or on an overlay of an overlay) the folder
//     is a bind mount, reported as weaker.
//   - Counters of the user. The kernel counts the resources of a user namespace for its owner, too. A prison may use a
//     third of the user's inotify instances, and half of the watches, pending signals, message queues and locked memory.
//     io_setup does not exist inside, since its requests are counted for the whole machine.
//   - Memory that no control group counts: unread answers in netlink sockets, 200 kB for each descriptor. The
//     keeper adds them up ten times a second and ends a prison that holds more of them than its memory limit
//     (TestNetlinkMemory). Before this check, four processes took 2.3 GB in a prison of 256 MB. Pipes, Unix
//     sockets, UDP, TCP, MPTCP, memfd, SysV memory and messages, epoll, timers, filters of calls and of sockets,
//     multicast memberships, page tables and locks are counted; keyrings, io_uring, bpf and ICMP do not exist
//     inside. When such memory reaches the limit, the kernel may choose init, which has more memory of its own than
//     the process that holds the sockets. The prison then ends, and start makes a new one.
//   - Priorities. Real-time priority is not inherited and cannot be gained. Root's keeper sets the lowest OOM score
//     that the agent can have; where the keeper may not, Landlock closes all of /proc for writing.
//   - Descriptors in flight over sockets are counted for the uid. The exporter may have four times as many as the
//     agent, so that landing continues. Descriptors that init passes to visit are counted for init's own uid.
//   - Init has a uid of its own: nobody inside, a random phantom outside. The agent cannot set init's limits,
//     scheduling or priority, nor signal or trace init (TestInitUnharmed). Init has the agent's gid, and in its user
//     namespace, which maps these two uids only, CAP_SETUID to start processes as the agent and CAP_KILL to end them.
//     The agent's processes inherit neither capability. A host process that writes in a frozen prison has init's real uid and the
//     agent's effective uid, so the agent cannot signal it either (TestFrozen). Init looks commands up, creates pipes and terminals, and watches files
//     with the agent's rights (setfsuid(2)). Where the user's range has only one id, init has the agent's uid, which
//     is reported as weaker: then the agent can make init stop answering, or end it together with every process
//     inside. The host never depends on init's answer: stop kills init from outside, landing reads through a prison of
//     its own with another init, and the next start makes a new one (TestInitStopped).
//   - The machine. Files of /proc about disks, swap, buses, interrupts, drivers, modules, locks and file systems
//     are empty. Files that builds read (processors, memory, load, version, groups) stay.
//   - The home outlives the prison, on the disk of the host state. The watchdog measures the home in a prison of
//     its own, with the home as the workspace, and checks both disks.
//
// What remains: devices cannot be overlaid, so a process inside sees that somebody opens /dev/null. Software that
// is installed on the host while a prison runs may appear inside only after the next start.
package native
