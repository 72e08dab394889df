package daemon

import (
	"context"
	"log"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// checkPause is the time after which a check that could not run is tried again.
const checkPause = 30 * time.Second

// checking runs the checks that cycles ask for, one at a time. It does so beside the cycles, because a check takes as long as the user's
// tests.
type checking struct {
	checker promote.Checker // may be nil
	log     *log.Logger
	done    chan error // receives the end of the running check; nil if none runs
	commit  gitops.OID // whose check began last
	failure error      // why the last check that ended has no result; nil if it has one
	again   time.Time  // when the check of commit may be tried again
}

// begin begins the check that a cycle asked for, unless a check is running. It begins the check of the same commit again only after a
// pause.
func (c *checking) begin(ctx context.Context, o ledger.Outcome) {
	wanted := o.Unchecked
	if wanted == nil || c.checker == nil || c.done != nil || wanted.Commit == c.commit && time.Now().Before(c.again) {
		return
	}
	c.commit, c.again, c.done = wanted.Commit, time.Now().Add(checkPause), make(chan error, 1)
	done := c.done
	go func() {
		_, err := c.checker.Run(ctx, *wanted)
		done <- err
	}()
}

// ended notes the end of the running check.
func (c *checking) ended(err error) {
	c.done = nil
	if err != nil && (c.failure == nil || c.failure.Error() != err.Error()) {
		c.log.Printf("check %.12s: %v", c.commit, err)
	}
	c.failure, c.again = err, time.Now().Add(checkPause)
}

// pause returns the time until the check that the last cycle asked for may begin. It returns 0 if the cycle asked for none, or if a check is
// running.
func (c *checking) pause(o ledger.Outcome) time.Duration {
	if o.Unchecked == nil || c.checker == nil || c.done != nil {
		return 0
	}
	return max(time.Until(c.again), time.Millisecond)
}

// wait waits for the end of the running check, whose context has ended.
func (c *checking) wait() {
	if c.done != nil {
		c.ended(<-c.done)
	}
}
