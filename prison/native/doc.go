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
//
// # Cost
//
// A start takes 19 ms (runc 28, gVisor 78, Docker 210 on the same machine), and the waiting processes
// 8.5 MB: keeper, init and exporter. No package compiles an expression when it is initialised, roles
// start with one processor's share of the runtime, and a process that was idle for two seconds gives
// back its heap and the pages of the program's file, which the page cache keeps. Packages are
// initialised in the order of their import paths, as far as their imports allow. So a role takes over
// before everything that sorts after this package, if this package does not need it: 2.5 ms each,
// instead of 5.9 with the packages net, net/netip and runtime/debug. Three roles start one after the
// other before a prison runs. The price is a file with five calls of unix(7).
//
// # The workspace
//
// The workspace is mounted through an overlay given by descriptors, which keeps its path out of the
// mount table inside. It belongs to the phantom on disk: with an idmapped mount, an agent's chmod 4755
// would make a program that is setuid to the user. The owner of a folder can open it to everybody, and
// git refuses a work tree that is not its user's, so the agent must be the owner. The daemon checks
// the mode each second, and so does stop: a workspace that other users can enter, or that the agent
// closed to itself, is reset to 0700. In that second another user who can reach the user's work tree
// can read and write in it.
//
// An ordinary user without subordinate ids could only make a prison whose user outside is the same
// user. That is no phantom: it is refused with exit status 5 and the line that mends it.
//
// Tools and other root file systems are overlays of two lower layers, ours (empty, or with the files
// made for the prison) above theirs, given by descriptors: read-only, and mountinfo shows no path. For
// a tool that is one file, the overlay of its folder is mounted aside, the file is bound from there,
// and the rest is unmounted. The builder opens the descriptors: since about Linux 6.15 a layer must be
// of the mount namespace that mounts the overlay. Tools appear as /tools/NAME, since their path on the
// host often names their owner.
//
// # Walls
//
//	layer                                   keeps                                                   if it fails
//	user namespace, phantom uid             files, processes and keys belong to somebody else       nothing else is visible
//	mount namespace, pivot_root             system folders (read-only), the workspace, a home       Landlock refuses changes, uids the rest
//	pid, ipc, uts, cgroup namespaces        no process, memory, name or group of the host           nobody's uid; Landlock's scopes
//	network namespace                       loopback of its own; "open" adds a relay                nothing: it is the one wall for abstract
//	                                                                                                sockets, beside Landlock's scope
//	no capabilities, secure bits,           nothing to mount, trace, load or regain; setuid         namespaces bound the use of a capability
//	no new privileges                       programs are plain ones
//	seccomp allow-list                      parts of the kernel that few programs use               -
//	Landlock                                all but workspace, home and scratch is unchangeable     mounts are read-only
//	control groups, else rlimits            memory, processor, processes; the host goes first       the weaker ones are reported
//
// The allowed system calls are those of Docker's and Podman's containers without capabilities
// (moby/profiles), so the same programs work. Refused beside them: set-id bits in modes (a file of the
// workspace is on the host's disk), clone3 and openat2 (a filter cannot see behind their pointers, and
// callers fall back), sockets except Unix, IP and routing netlink, typing into terminals. New calls of
// newer kernels do not exist inside. 32-bit calls kill, and x32 calls do not exist. A test runs the
// filter's program over every number.
//
// The kernel is shared: a bug in one of about 300 calls can be a way out. Caches, load and timing say
// something about the host. Nothing hides that this is a namespace. scripts/test-kernel runs the tests
// under another kernel: in Debian's 6.1 nothing is weaker.
//
// # What can be done to the host without leaving
//
//   - Core dumps. The limit is 1, soft and hard. With 0 the kernel makes no file but starts the
//     program of core_pattern, as root, with the agent's memory as input (core(5)). The filter answers
//     setrlimit and prlimit64 of this limit with success and does nothing, since gpg and ssh-agent end
//     when they cannot set it to 0. A hard limit of 0 that cannot be raised stays, and is reported as
//     weaker.
//   - System files are overlays of the host's folders above an empty one. With bind mounts, inotify
//     inside reports each program that the host starts, and flock inside blocks those who lock the
//     same file outside. A folder with mounts in it is taken apart, since the kernel's overlay would
//     show what these mounts cover. Where no overlay can be made (before Linux 5.11, or on an overlay
//     of an overlay) it is a bind mount, reported as weaker.
//   - Counters of the user. The owner of a user namespace pays for its use. Inside there is a third of
//     the user's inotify instances, and half of the watches, pending signals, message queues and
//     locked memory. io_setup does not exist, as its requests are the whole machine's.
//   - Priorities. Real-time priority is not inherited and cannot be gained. Root's keeper sets the
//     lowest OOM score that the agent can have; where it may not, Landlock shuts all of /proc for
//     writing.
//   - Descriptors in flight over sockets are counted for the uid. The exporter may have four times as
//     many as the agent, so that landing goes on. visit passes descriptors as the agent's own init,
//     and reports when that fails.
//   - Init has the agent's uid. It cannot be traced, read, written or robbed of descriptors, since it is
//     not dumpable, and signals from inside end or stop it never (pid_namespaces(7)). But the agent can
//     set its limits, scheduling and priority to the worst, and those of its threads. With a limit init
//     answers no more, or ends, and every process inside with it; that is what an agent can do to
//     itself anyway, by using up its processes. The host waits for no answer: stop kills init from
//     outside, landing reads through a prison of its own with another init, whose pid does not exist
//     inside, and the next start makes a new one (TestInitHarmed). The filter cannot close it: programs set
//     these for their own threads and children, and it cannot tell the numbers of init's threads.
//   - The machine. Files of /proc about disks, swap, buses, interrupts, drivers, modules, locks and
//     file systems are empty. Files that builds read (processors, memory, load, version, groups) stay.
//   - The home outlives the prison, on the disk of the host state. The watchdog measures it in a
//     prison of its own, with the home as the workspace, and checks both disks.
//
// What remains: devices cannot be overlaid, so one sees inside that somebody opens /dev/null. Software
// installed on the host while a prison runs may show inside after the next start only. An agent that
// floods its sockets keeps visit out until stop.
package native
