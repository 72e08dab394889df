package review

import (
	"fmt"
	"maps"

	"github.com/git-airlock/git-airlock/gitops"
)

// Mode is the value of the setting airlock.review.
type Mode string

// The modes.
const (
	Off  Mode = "off"  // commits land at once
	Land Mode = "land" // nothing lands before it is approved
	Push Mode = "push" // commits land at once, and a hook holds their push until they are reviewed
)

// ParseMode reads a mode.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case Off, Land, Push:
		return m, nil
	}
	return "", fmt.Errorf("%q is not off, land or push", gitops.Text(text))
}

// Verdicts decide which commits may land. The zero value lets all commits land.
type Verdicts struct {
	Asks  bool                // only approved commits land
	Words map[gitops.OID]Word // the newest verdict on each inner commit
}

// Holds reports whether a commit may not land under the verdicts.
func (v Verdicts) Holds(inner gitops.OID) bool {
	switch v.Words[inner] {
	case Approve:
		return false
	case Reject, Undone, Fix:
		return true
	}
	return v.Asks
}

// Waiting returns the commits that must be set aside so that other commits land without them, and those among them that the agent must
// fix. If no commit may land, both are the latter, so that the others keep their order.
func (v Verdicts) Waiting(commits []gitops.OID) (waiting, asked map[gitops.OID]bool) {
	waiting, asked = map[gitops.OID]bool{}, map[gitops.OID]bool{}
	lands := false
	for _, id := range commits {
		switch {
		case v.Words[id].LeavesOut():
		case v.Holds(id):
			waiting[id] = true
			if v.Words[id] == Fix {
				asked[id] = true
			}
		default:
			lands = true
		}
	}
	if !lands {
		waiting = maps.Clone(asked)
	}
	return waiting, asked
}

// State is the state of a commit as the user sees it.
type State string

// The states.
const (
	StateNew      State = "new"
	StateSeen     State = "seen"
	StateApproved State = "approved" // and not landed yet
	StateRejected State = "rejected"
	StateAsked    State = "asked"   // waits for a fix of the agent
	StateChanged  State = "changed" // in the place of a commit that had a verdict
	StateBlocked  State = "blocked" // does not apply without commits that were rejected or that wait for a fix
	StateLanded   State = "landed"  // waits for a verdict before it is pushed
	StateUndone   State = "undone"  // landed, and taken back
)

// StateOf returns the state of a pending commit with a verdict, or with an empty word. blocked reports that it does not
// apply without the commits that are left out, and changed that it replaces a commit with a verdict.
func StateOf(w Word, blocked, changed bool) State {
	switch {
	case w == Reject:
		return StateRejected
	case w == Undone:
		return StateUndone
	case w == Fix:
		return StateAsked
	case blocked:
		return StateBlocked
	case w == Approve:
		return StateApproved
	case changed:
		return StateChanged
	case w == Seen:
		return StateSeen
	}
	return StateNew
}

// Waits reports whether a commit in this state waits for a verdict of the user.
func (s State) Waits() bool {
	return s == StateNew || s == StateSeen || s == StateChanged || s == StateLanded
}

// Counts are the numbers of commits that wait, by the verdicts on them.
type Counts struct {
	Waiting  int `json:"waiting"`  // for a verdict of the user
	Approved int `json:"approved"` // and not landed yet
	Asked    int `json:"asked"`    // for a fix of the agent
	Rejected int `json:"rejected"`
	Undone   int `json:"undone"`
	Blocked  int `json:"blocked"`
}

// Add counts a commit in a state.
func (c *Counts) Add(s State) {
	switch s {
	case StateApproved:
		c.Approved++
	case StateAsked:
		c.Asked++
	case StateRejected:
		c.Rejected++
	case StateUndone:
		c.Undone++
	case StateBlocked:
		c.Blocked++
	default:
		c.Waiting++
	}
}
