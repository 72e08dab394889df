package checks

// State is the state of a commit at which a landing may end.
type State int

// The states.
const (
	Unknown State = iota // nobody has checked its tree
	Free                 // its tree needs no check
	Passed
	Failed
)

// Choose returns the newest commit at which a landing may end, and the commit to check next. Both are indexes of states, or -1 for none.
// states has the states of commits, oldest first. The newest commit is checked first. If it fails, a binary search finds a commit that
// fails directly after one that does not.
func Choose(states []State) (lands, next int) {
	lands, newest := -1, len(states)-1
	for i, s := range states {
		if s == Free || s == Passed {
			lands = i
		}
	}
	if lands == newest {
		return lands, -1
	}
	if states[newest] == Unknown {
		return lands, newest
	}
	failed := FirstFailed(states, lands)
	if failed-lands == 1 {
		return lands, -1
	}
	return lands, (lands + failed) / 2
}

// FirstFailed returns the oldest failed commit after another one, or -1.
func FirstFailed(states []State, after int) int {
	for i := after + 1; i < len(states); i++ {
		if states[i] == Failed {
			return i
		}
	}
	return -1
}
