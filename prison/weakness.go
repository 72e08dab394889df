package prison

import "slices"

// Weakness is a measure of isolation that this machine, engine or runtime could not provide.
type Weakness struct {
	Kind Missing // for comparisons
	Text string  // for messages
}

// Missing is the kind of a [Weakness].
type Missing string

const (
	// OwnKernel means that the runtime's own kernel handles system calls, and decides which of them it allows.
	OwnKernel Missing = "own-kernel"
	// NoCallFilter means that the runtime allows every system call.
	NoCallFilter Missing = "no-call-filter"
	// NoLandlock means that only mounts protect files, and not Landlock as well.
	NoLandlock Missing = "no-landlock"
	// HostCoreProgram means that a crash inside starts the host's program for core dumps.
	HostCoreProgram Missing = "host-core-program"
	// LooseScore means that the agent can change its OOM score, and so which process the kernel kills when memory runs out.
	LooseScore Missing = "loose-score"
	// SharedInit means that the first process inside has the agent's uid, so that the agent can starve it.
	SharedInit Missing = "shared-init"
	// NoSELinux means that the container is not confined by SELinux although this machine uses it.
	NoSELinux Missing = "no-selinux"
	// HostPath means that a path of the host can be read in mountinfo.
	HostPath Missing = "host-path"
	// SharedSystem means that processes inside can watch and lock files of the host.
	SharedSystem Missing = "shared-system"
	// NoMemoryLimit means that memory is not limited.
	NoMemoryLimit Missing = "no-memory-limit"
	// LooseMemoryLimit means that the memory limit does not count everything, or ends more processes than it should.
	LooseMemoryLimit Missing = "loose-memory-limit"
	// UncountedNetlink means that the memory limit does not count what waits in netlink sockets.
	UncountedNetlink Missing = "uncounted-netlink"
	// NoCPULimit means that processor time is not limited.
	NoCPULimit Missing = "no-cpu-limit"
	// LooseProcessLimit means that the process limit counts all processes of the uid.
	LooseProcessLimit Missing = "loose-process-limit"
	// NoPrograms means that the programs inside are not recorded.
	NoPrograms Missing = "no-programs"
	// NoTUN means that the network's interface is one of a pair, because no TUN device can be opened.
	NoTUN Missing = "no-tun"
)

// Lacks reports whether a measure is missing.
func (i Isolation) Lacks(kind Missing) bool {
	return slices.ContainsFunc(i.Weaker, func(w Weakness) bool { return w.Kind == kind })
}

// Unrecorded is the weakness of a prison whose programs should be recorded, but are not, for the reason.
func Unrecorded(reason string) Weakness {
	return Weakness{Kind: NoPrograms, Text: "programs are not recorded: " + reason}
}
