package native

import (
	"github.com/git-airlock/git-airlock/prison"
)

// limits is how the bounds of [prison.Limits] are kept on this machine.
type limits struct {
	groups                   []cgroup
	memoryRlimit, pidsRlimit uint64
	weaker                   []string
}

type cgroup struct{ dir string }

func planLimits(s prison.Spec) *limits { return rlimitsOnly(s) }
func rlimitsOnly(s prison.Spec) *limits {
	l := s.Limits.OrDefault()
	return &limits{memoryRlimit: uint64(l.Memory), pidsRlimit: uint64(l.PIDs)}
}
func (l *limits) directories() (dirs []string) { return nil }
func (l *limits) enter(pid int) error          { return nil }
func removeCgroup(dir string) error            { return nil }
