package promote

import (
	"context"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// Judged is what the policy gate said of the commits of an airlock, and what the user decided about them. All of it
// is fit to be shown.
type Judged struct {
	Held     []Verdict  `json:"held"`    // wait, oldest first
	Flagged  []Flagged  `json:"flagged"` // have landed, oldest first
	Accepted []Accepted `json:"accepted"`
	Dropped  []Dropped  `json:"dropped"`
}

// Flagged names the rules that found something in a commit which has landed.
type Flagged struct {
	Commit gitops.OID `json:"commit"`
	Rules  []string   `json:"rules"`
}

// Judged reads what the gate said last. It changes nothing.
func (e *Engine) Judged(ctx context.Context) (Judged, error) {
	j := Judged{Held: []Verdict{}, Flagged: []Flagged{}, Accepted: []Accepted{}, Dropped: []Dropped{}}
	c := &cycle{Engine: e}
	waiting, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if unlock, err := e.Store.LockFile(waiting, e.Record.ID, cycleLock); err == nil {
		defer unlock()
	}
	if err := c.look(ctx); err != nil {
		return j, err
	}
	said, err := readVerdicts(e.Dir(), "", c.ledger)
	if err != nil {
		return j, err
	}
	for _, t := range c.ledger.tail {
		if v := said.last(t.outer); v.holds() {
			j.Held = append(j.Held, *v)
		}
	}
	j.Flagged = append(j.Flagged, said.landed(c.ledger)...)
	decided, err := readDecisions(e.Dir())
	j.Accepted, j.Dropped = append(j.Accepted, decided.Accepted...), append(j.Dropped, decided.Dropped...)
	return j, err
}

// landed lists what was found in commits that have landed.
func (v *verdicts) landed(l *ledger) []Flagged {
	var list []Flagged
	for _, said := range v.flagged(l) {
		list = append(list, Flagged{said.Commit, said.rules(func(policy.Finding) bool { return true })})
	}
	return list
}
