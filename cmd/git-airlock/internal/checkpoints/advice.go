package checkpoints

import (
	"errors"
	"math"
	"strings"
	"syscall"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint"
)

// longestPath is the kernel's limit for the path of a file, in bytes.
const longestPath = 4095

// permit returns the command that lets the agent read a file again. No command can name a path above the
// kernel's limit, and permit then returns the command that opens a shell inside.
func permit(path string) string {
	if len(path) > longestPath {
		return "git airlock visit"
	}
	return "git airlock visit -- chmod u+rwX -- " + gitops.Pasteable(path)
}

// advise adds the next commands to an error.
func advise(err error) error {
	refused, large := new(checkpoint.Unreadable), new(checkpoint.TooLarge)
	switch {
	case errors.As(err, &refused) && refused.TooDeep():
		return environment.Advise(err, shorten(refused.Paths[0]))
	case errors.As(err, &refused) && refused.Reason == syscall.EAGAIN.Error():
		return environment.Advise(err, "git airlock stop && git airlock start  # a process of the agent has leases on files")
	case errors.As(err, &refused):
		return environment.Advise(err, permit(refused.Paths[0]))
	case errors.As(err, &large):
		return environment.Advise(err, makeRoom(large))
	case errors.Is(err, checkpoint.ErrNoCheckpoint):
		return environment.Advise(err, "git airlock checkpoint list")
	}
	return err
}

// shorten returns the command that removes a chain of too many folders. No checkpoint is made before, so it keeps the outer folders, in
// which there may be other files.
func shorten(path string) string {
	const (
		kept  = 50   // folders: more than people and programs nest
		short = 2000 // bytes, so that the command can be pasted
	)
	names := strings.Split(path, "/")
	names = names[:min(len(names), kept+1)]
	for len(names) > 1 && len(strings.Join(names, "/")) > short {
		names = names[:len(names)-1]
	}
	return "git airlock visit -- rm -rf -- " + gitops.Pasteable(strings.Join(names, "/"))
}

// makeRoom returns the command that sets a limit with which the checkpoint can be made. For a file that takes too long to read, whatever
// the limit is, it returns the one that shows the file.
func makeRoom(t *checkpoint.TooLarge) string {
	const largest = 64 << 30 // bytes that a slow disk reads in serveTime
	if t.Largest > largest && len(t.Path) <= longestPath {
		return "git airlock visit -- ls -l -- " + gitops.Pasteable(t.Path) + "  # too large for any checkpoint"
	}
	const bits, least = 30, 8 // gigabytes
	need := t.Bytes >> bits
	need += need/4 + 1 // names, modes and times need room, too
	return "git config airlock.checkpoint.max " + policy.SizeText(min(max(need, least), math.MaxInt64>>bits)<<bits)
}
