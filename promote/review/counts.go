package review

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
