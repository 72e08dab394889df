package programs

import (
	"path"
	"slices"

	"github.com/git-airlock/git-airlock/prison/watch/execs"
)

// WithoutTries leaves out the calls with which a shell has looked for a program in the folders of PATH, except the last one: the same
// process made the next call, for the same command.
func WithoutTries(records []execs.Record) (kept []execs.Record) {
	next := map[int]execs.Record{} // by process
	for _, r := range slices.Backward(records) {
		after, again := next[r.PID]
		next[r.PID] = r
		if again && !r.Ran() && path.Base(r.Path) == path.Base(after.Path) && path.Dir(r.Path) != path.Dir(after.Path) &&
			slices.Equal(r.Argv, after.Argv) && r.CWD == after.CWD && (r.Deny == nil || after.Deny != nil) {
			continue
		}
		kept = append(kept, r)
	}
	slices.Reverse(kept)
	return kept
}
