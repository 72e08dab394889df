package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// The gate counts the work that a commit makes it do: bytes that it reads and searches, entries of folders, steps along links.
// A commit with more of that than a limit is held by the rule "budget". Work is the same on every machine, so that the same
// commits are held everywhere. Time is the last resort, for work that nobody counts.

const (
	// workKey and timeKey are the settings of the limits.
	workKey = "airlock.limit.work"
	timeKey = "airlock.limit.check"
	// defaultWork is what a commit of 200 MB of new text takes, about half a minute.
	defaultWork = 2 << 30
	// defaultTime is far more than defaultWork takes.
	defaultTime = 300
	// cycleShare is how many commits of the largest size one cycle looks at, and landing waits for.
	cycleShare = 4
)

// Costs, in bytes that are read in the same time.
const (
	objectCost = 1 << 10 // of finding an object
	entryCost  = 64      // of an entry of a folder
	searchCost = 8       // of a byte that is searched for secrets
	stepCost   = 256     // of following a link by one component
	changeCost = 1 << 10 // of a change that all rules look at, beside its path
)

// budget is a rule that finds nothing by itself: the gate reports by it that others did not come to their end.
type budget struct{}

const budgetID = "budget"

func (budget) describe() Description {
	return documented(budgetID, Hold, "a commit that takes more work to check than "+workKey+" allows, or more time than "+timeKey+"; what is left of it is not checked")
}

func (budget) change(context.Context, *inspection, gitops.Change, *report) error { return nil }
func (budget) commit(context.Context, *inspection, *report) error                { return nil }

// Work is how much work one commit may take.
func (s Settings) Work() int64 {
	if s.work == 0 {
		return defaultWork
	}
	return s.work
}

// Time is how long one commit may take, whatever it does.
func (s Settings) Time() time.Duration {
	if s.seconds == 0 {
		return defaultTime * time.Second
	}
	return time.Duration(s.seconds) * time.Second
}

// errSpent says that the work of a commit is used up.
var errSpent = errors.New("the budget is spent")

// meter counts the work of one commit.
type meter struct{ left int64 }

func (m *meter) spend(work int64) error {
	if m.left -= work; m.left < 0 {
		return errSpent
	}
	return nil
}

// metered are objects, reading which is work.
type metered struct {
	Objects
	meter *meter
}

func (o metered) Blob(ctx context.Context, id gitops.OID, limit int64) ([]byte, int64, error) {
	if err := errors.Join(ctx.Err(), o.meter.spend(objectCost)); err != nil {
		return nil, 0, err
	}
	head, size, err := o.Objects.Blob(ctx, id, limit)
	if err == nil {
		err = o.meter.spend(size) // all of it was passed over
	}
	return head, size, err
}

func (o metered) Tree(ctx context.Context, id gitops.OID) ([]gitops.TreeEntry, error) {
	if err := errors.Join(ctx.Err(), o.meter.spend(objectCost)); err != nil {
		return nil, err
	}
	entries, err := o.Objects.Tree(ctx, id)
	if err == nil {
		err = o.meter.spend(int64(len(entries)) * entryCost)
	}
	return entries, err
}

// over reports that the work or the time for a commit ran out, and where.
func (g *Gate) over(c Commit, rule, path, reason string) Finding {
	action := g.settings.Action(budgetID)
	if action == Off {
		action = Flag // never silently
	}
	r := &report{rule: budgetID, action: action, accepted: c.accepts}
	where := ""
	if rule != "" {
		where = " at the rule " + rule
	}
	r.at(path, "%s%s; what is left of the commit is not checked", reason, where)
	return r.findings()[0]
}

// TooLong is what is found in a commit that took more time than it may.
func (g *Gate) TooLong(c Commit) []Finding {
	return []Finding{g.over(c, "", "", fmt.Sprintf("checking it takes longer than %s allows (%d seconds)", timeKey, int64(g.settings.Time()/time.Second)))}
}

// Later reports that the commits checked so far are enough for one cycle.
func (g *Gate) Later() bool { return g.spent > cycleShare*g.settings.Work() }
