package ledger

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Reason names the cause of a hold.
type Reason string

// The reasons, in the order in which they are reported when several apply at once.
const (
	OperationInProgress Reason = "operation-in-progress"
	BranchDeleted       Reason = "branch-deleted"
	BranchSwitched      Reason = "branch-switched"
	DetachedHead        Reason = "detached-head"
	Collision           Reason = "collision"
	Conflict            Reason = "conflict"
	IndexLocked         Reason = "index-locked"
	DiskFull            Reason = "disk-full"
	InnerInvalid        Reason = "inner-invalid"
	InnerMain           Reason = "inner-main"
	WorkspaceFull       Reason = "workspace-full"
	Policy              Reason = "policy"
	Check               Reason = "check"
	Review              Reason = "review"
)

// Reasons lists all reasons in that order.
var Reasons = []Reason{OperationInProgress, BranchDeleted, BranchSwitched, DetachedHead, Collision, Conflict,
	IndexLocked, DiskFull, InnerInvalid, InnerMain, WorkspaceFull, Policy, Check, Review}

// Hold is one reason why commits wait, and what the user can do about it. All its text is escaped.
type Hold struct {
	Reason  Reason    `json:"reason"`
	Paths   []string  `json:"paths"`
	Message string    `json:"message"`
	Next    []string  `json:"next"` // commands that can be pasted into a shell
	Since   time.Time `json:"since"`

	// Places are the paths as the file system has them. The daemon watches them. They are not stored.
	Places []string `json:"-"`
}

// Position reports whether the reason lies in the user's HEAD or branch. Such a hold matters only while commits wait.
func (r Reason) Position() bool {
	return slices.Index(Reasons, r) <= slices.Index(Reasons, DetachedHead)
}

// OfCommits reports whether the reason lies in the commits that wait. Such a hold says nothing about the commits of another line.
func (r Reason) OfCommits() bool {
	return slices.Contains([]Reason{Collision, Conflict, InnerInvalid, InnerMain, Policy, Check, Review}, r)
}

// SortHolds returns the holds in the order of [Reasons]. A reason that is also in before keeps its Since; the others
// get now. The result and its lists are never nil.
func SortHolds(holds, before []Hold, now time.Time) []Hold {
	holds = append([]Hold{}, holds...)
	slices.SortStableFunc(holds, func(a, b Hold) int {
		return cmp.Compare(slices.Index(Reasons, a.Reason), slices.Index(Reasons, b.Reason))
	})
	for i := range holds {
		holds[i].Since = Timestamp(now)
		for _, b := range before {
			if b.Reason == holds[i].Reason {
				holds[i].Since = b.Since
			}
		}
		if holds[i].Paths == nil {
			holds[i].Paths = []string{}
		}
		if holds[i].Next == nil {
			holds[i].Next = []string{}
		}
	}
	return holds
}

// WithStart returns commands to type next, with one that starts the prison before the first that needs it, unless the prison runs.
func WithStart(commands []string, runs bool) []string {
	first := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, "git airlock visit") })
	if runs || first < 0 {
		return commands
	}
	return slices.Insert(slices.Clone(commands), first, "git airlock start")
}
