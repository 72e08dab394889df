package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// The gate counts its work for each commit: bytes that it reads and searches, entries of folders, steps along links. The
// rule "budget" holds a commit that causes more work than the limit. The amount of work is the same on every machine, so
// that the same commits are held everywhere. The limit on time is only for work that is not counted.

const (
	// workKey and timeKey are the settings of the limits.
	workKey = "airlock.limit.work"
	timeKey = "airlock.limit.check"
	// defaultWork is the work for a commit with 200 MB of new text, which takes about half a minute.
	defaultWork = 2 << 30
	// defaultTime is far longer than defaultWork takes.
	defaultTime = 300
	// maxSeconds is the longest time that the setting can allow, one day.
	maxSeconds = 24 * 60 * 60
	// cycleShare is the number of commits of the largest size that one cycle checks before landing.
	cycleShare = 4
)

// Costs, in bytes that can be read in the same time.
const (
	objectCost  = 1 << 10 // to find an object
	entryCost   = 64      // for an entry of a folder
	searchCost  = 8       // for a byte that is searched for secrets
	patternCost = 32      // for a byte of a pattern
	stepCost    = 256     // to follow a link by one component
	changeCost  = 1 << 10 // for a change that all rules check, in addition to its path
)

// budgetID is the id of a rule without findings of its own. The gate uses it to report that the other rules could not finish.
const budgetID = "budget"

// Work returns the work that one commit may cause.
func (s Settings) Work() int64 {
	if s.work == 0 {
		return defaultWork
	}
	return s.work
}

// Time returns the time that checking one commit may take.
func (s Settings) Time() time.Duration {
	if s.seconds == 0 {
		return defaultTime * time.Second
	}
	return time.Duration(s.seconds) * time.Second
}

// errSpent reports that the work of a commit is used up.
var errSpent = errors.New("the budget is spent")

// meter counts the work for one commit.
type meter struct{ left int64 }

func (m *meter) spend(work int64) error {
	if m.left -= work; m.left < 0 {
		return errSpent
	}
	return nil
}

// metered reads objects, and counts the work for reading them.
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
		err = o.meter.spend(size) // git reads all of the object
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

// over returns the finding that the work or the time for a commit ran out, with the rule and the path.
func (g *Gate) over(c Commit, rule, path, reason string) Finding {
	action := g.settings.Action(budgetID)
	if action == Off {
		action = Flag // a commit that was not checked completely must have a finding
	}
	r := &report{rule: budgetID, action: action, accepted: c.accepts}
	where := ""
	if rule != "" {
		where = " at the rule " + rule
	}
	r.at(path, "%s%s; the rest of the commit is not checked", reason, where)
	return r.findings()[0]
}

// TooLong returns the finding for a commit whose check took longer than allowed.
func (g *Gate) TooLong(c Commit) []Finding {
	return []Finding{g.over(c, "", "", fmt.Sprintf("checking it takes longer than %s allows (%d seconds)", timeKey, int64(g.settings.Time()/time.Second)))}
}

// Later reports whether the commits checked so far have used up the work of one cycle.
func (g *Gate) Later() bool { return g.spent/cycleShare > g.settings.Work() }
