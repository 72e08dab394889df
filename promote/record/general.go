package record

// Sentences of [Manifest.Visibility] that hold for every run, whatever the run did.
const (
	UnseenReads    = "what the command read in the workspace is not recorded"
	UnseenContents = "your files are compared by names, sizes, modes and times, not by contents"
	UnseenSecrets  = "secrets are masked where a rule of the gate finds them: others can be in the output"
	UnseenInside   = "shell builtins, code inside interpreters and loaders in user space are not seen as programs"
	UnseenShared   = "memory is the sum of all processes: what they share counts several times"
	UnseenKernel   = "what the kernel refused by itself is not recorded, such as a write to a read-only file"
)

// General returns the sentences of [Manifest.Visibility] that hold for every run. The others are about the run.
func General() []string {
	return []string{UnseenReads, UnseenContents, UnseenSecrets, UnseenInside, UnseenShared, UnseenKernel}
}
