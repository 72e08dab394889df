// Package native makes prisons out of Linux namespaces, without a daemon, an image or a helper program other than
// the calling program itself.
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
// its own (package egress, which a program that uses this package must import as well). Every packet ends there, so
// nobody inside can reach an address that this process refuses, whatever they do to their sockets. The process
// has a uid that no other process has, and no rights except reading a few files. These belong to threads, and the
// program has many of them by the time package net is initialised, so they are set before the program is executed.
// Where root makes the prison, a thread of the keeper does that, starts the process, and ends. For an ordinary user
// the relay does, in a user namespace, and then executes the program again. The process that made the prison keeps a
// duplicate of the interface's other end: if the network's process is killed, no packet leaves until its successor
// runs, and nothing changes inside.
//
// Where no TUN device can be opened, the interface is one of a pair, see veth(4). The other one is in a second network
// namespace, and a packet(7) socket has its frames in the place of the device.
//
// The process that made the prison also has the files that the network's process does not have: the rules, the state
// and the ledger (package prison/egress/control).
//
// A record of programs adds another process outside, the recorder (package prison/watch/execs). Init gives its processes a
// second filter, which sends the calls that begin and end programs to a listener. Init passes the listener to the keeper,
// the keeper to the recorder, and nobody inside keeps it. The keeper starts a successor if the recorder ends or does not
// answer.
//
// A prison made by Open has no keeper. Its init is a child of the caller, and ends when the caller's end of a
// socket pair is closed.
//
// # Rooms
//
// This package is the host's side: the backend, the keeper, and the client of init. Package wire contains the roles
// and their messages, walls separates the inside from the host, inside builds the file system and is init, and
// usernet provides the interface of a network inside, and the process outside that has its other end.
//
// # Privileges
//
// The user namespace maps the phantom's uid and gid to themselves, and a second uid for init. Root writes this map itself; other
// users need newuidmap(1) and a range in /etc/subuid. The builder keeps its capabilities across execve(2) as
// ambient ones, since its uid is not mapped yet. It works on one locked thread and ends in execve(2), since Linux
// keeps credentials per thread, and the Go runtime can change the credentials of all threads only in programs
// without cgo.
//
// # Cost
//
// A start takes 19 ms (runc 28, gVisor 78, Docker 210 on the same machine), and the waiting processes take 8.5 MB:
// keeper, init and exporter. Several measures keep it that low. No package compiles a regular expression during
// initialisation. Roles start with the runtime configured for one processor. A process that was idle for two
// seconds returns its heap and the pages of the program's file, which the page cache keeps.
//
// Packages are initialised in the order of their import paths, as far as their imports allow. A role therefore
// takes over before every package that sorts after this one, if neither this package nor its rooms import that
// package. A role then starts in 2.5 ms, instead of 5.9 ms with the packages net, net/netip and runtime/debug, and
// three roles start one after the other before a prison runs. The price is a file with five calls of unix(7).
//
// # The workspace
//
// The workspace is mounted through an overlay given by descriptors, which keeps its path out of the mount table
// inside. On disk the workspace belongs to the phantom. With an idmapped mount instead, an agent's chmod 4755 would
// make a program that is setuid to the user. The agent must be the owner, since git refuses a work tree that its
// user does not own. But the owner of a folder can open it to everybody. The daemon therefore checks the mode each
// second, and so does stop: a workspace that other users can enter, or that the agent closed to itself, is reset to
// 0700. Within that second, another user who can reach the user's work tree can read and write in the workspace.
//
// An ordinary user without subordinate ids could only make a prison whose user outside is the same user. That would
// not be a phantom, so this is refused with exit status 5 and the command that fixes it.
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
//	layer                                   keeps                                                   if it fails
//	user namespace, phantom uid             files, processes and keys belong to another user        nothing else is visible
//	mount namespace, pivot_root             system folders (read-only), the workspace, a home       Landlock refuses changes, uids the rest
//	pid, ipc, uts, cgroup namespaces        no process, memory, name or group of the host           nobody's uid; Landlock's scopes
//	network namespace                       loopback of its own; "open" adds an interface           nothing: it is the one wall for abstract
//	                                                                                                sockets, beside Landlock's scope
//	no capabilities, secure bits,           nothing to mount, trace, load or regain; setuid         namespaces bound the use of a capability
//	no new privileges                       programs are plain ones
//	seccomp allow-list                      parts of the kernel that few programs use               -
//	Landlock                                all but workspace, home and scratch is unchangeable     mounts are read-only
//	control groups, else rlimits            memory, processor, processes; the host goes first       the weaker ones are reported
//
// The allowed system calls are those of Docker's and Podman's containers without capabilities (moby/profiles), so
// the same programs work. In addition the filter refuses set-id bits in modes (a file of the workspace is on the
// host's disk), clone3 and openat2 (a filter cannot see behind their pointers, and callers fall back), sockets
// other than Unix, IP and routing netlink, and typing into terminals. Calls that a newer kernel adds do not exist
// inside. 32-bit calls kill the process, and x32 calls do not exist. A test runs the filter's program over every
// number.
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
//   - Counters of the user. The owner of a user namespace pays for its use. Inside there is a third of the user's
//     inotify instances, and half of the watches, pending signals, message queues and locked memory. io_setup does
//     not exist inside, since its requests are counted for the whole machine.
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
//     agent, so that landing continues. Those that visit passes are counted for init's own uid.
//   - Init has a uid of its own: nobody inside, a random phantom outside. The agent cannot set init's limits,
//     scheduling or priority, nor signal or trace init (TestInitUnharmed). Init has the agent's gid, and in its user
//     namespace, which maps these two uids only, CAP_SETUID to start processes as the agent and CAP_KILL to end them.
//     The agent's processes inherit neither. Init looks commands up, creates pipes and terminals, and watches files
//     with the agent's rights (setfsuid(2)). Where the user's range has only one id, init has the agent's uid, which
//     is reported as weaker: then the agent can make init stop answering, or end it together with every process
//     inside. The host never depends on an answer: stop kills init from outside, landing reads through a prison of
//     its own with another init, and the next start makes a new one (TestInitStopped).
//   - The machine. Files of /proc about disks, swap, buses, interrupts, drivers, modules, locks and file systems
//     are empty. Files that builds read (processors, memory, load, version, groups) stay.
//   - The home outlives the prison, on the disk of the host state. The watchdog measures the home in a prison of
//     its own, with the home as the workspace, and checks both disks.
//
// What remains: devices cannot be overlaid, so a process inside sees that somebody opens /dev/null. Software that
// is installed on the host while a prison runs may appear inside only after the next start.
package native
