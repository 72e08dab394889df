package promote

import (
	"cmp"
	"slices"
	"time"
)

// Reason is why landing waits.
type Reason string

// The reasons, in the order in which they are named when several hold at once.
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
	Review              Reason = "review"
)

// Reasons are all of them, in that order.
var Reasons = []Reason{OperationInProgress, BranchDeleted, BranchSwitched, DetachedHead, Collision, Conflict,
	IndexLocked, DiskFull, InnerInvalid, InnerMain, WorkspaceFull, Policy, Review}

// Hold says why landing waits, and what to do about it.
type Hold struct {
	Reason  Reason    `json:"reason"`
	Paths   []string  `json:"paths"`
	Message string    `json:"message"`
	Next    []string  `json:"next"` // commands that can be pasted into a shell
	Since   time.Time `json:"since"`

	places []string // what Paths shows, as the file system has it; nil if it is read from a file
}

// position tells of the holds that follow from where the user stands, which hold only what waits.
func (r Reason) position() bool {
	return slices.Index(Reasons, r) <= slices.Index(Reasons, DetachedHead)
}

// sortHolds puts holds into the order of their reasons, and gives those that held before the time since when
// they do; the others hold since now. A nil list becomes an empty one.
func sortHolds(holds, before []Hold, now time.Time) []Hold {
	holds = append([]Hold{}, holds...)
	slices.SortStableFunc(holds, func(a, b Hold) int {
		return cmp.Compare(slices.Index(Reasons, a.Reason), slices.Index(Reasons, b.Reason))
	})
	for i := range holds {
		holds[i].Since = now.UTC().Truncate(time.Second)
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
