package prison

// Weakness is a measure of isolation that this machine, engine or runtime could not give.
type Weakness struct {
	Kind Missing // for programs
	Text string  // for people
}

// Missing is the kind of a [Weakness].
type Missing string

const (
	// OwnKernel is the runtime's: what system calls it allows, and what they do, is its own.
	OwnKernel Missing = "own-kernel"
	// NoCallFilter is one that lets every system call through.
	NoCallFilter Missing = "no-call-filter"
	// NoLandlock is one wall where there should be two.
	NoLandlock Missing = "no-landlock"
	// HostCoreProgram is the host's program for core dumps, which a crash inside starts.
	HostCoreProgram Missing = "host-core-program"
	// LooseScore is whom the kernel chooses to kill, where the agent can change that.
	LooseScore Missing = "loose-score"
	// NoSELinux is the same, of a machine that confines containers by it.
	NoSELinux Missing = "no-selinux"
	// HostPath is one of the host's that can be read in mountinfo.
	HostPath Missing = "host-path"
	// SharedSystem are files of the host's that can be watched and locked from inside.
	SharedSystem Missing = "shared-system"
	// HostReachable are the host's services that an open network reaches.
	HostReachable Missing = "host-reachable"
	// PrivateReachable are private networks and clouds' metadata that an open network reaches.
	PrivateReachable Missing = "private-reachable"
	// NoMemoryLimit is none at all.
	NoMemoryLimit Missing = "no-memory-limit"
	// LooseMemoryLimit is one that counts not everything, or ends more than it should.
	LooseMemoryLimit Missing = "loose-memory-limit"
	// NoCPULimit is none at all.
	NoCPULimit Missing = "no-cpu-limit"
	// LooseProcessLimit is one that counts by uid.
	LooseProcessLimit Missing = "loose-process-limit"
)

// Lacks reports whether a measure of a kind is missing.
func (i Isolation) Lacks(kind Missing) bool {
	for _, w := range i.Weaker {
		if w.Kind == kind {
			return true
		}
	}
	return false
}
