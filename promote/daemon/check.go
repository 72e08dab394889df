package daemon

import (
	"context"
	"log"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// checkPause is the time before a check is tried again that could not run.
const checkPause = 30 * time.Second

// checking runs the checks that cycles ask for, one at a time, beside the cycles: a check takes as long as the user's tests.
type checking struct {
	checker promote.Checker // may be nil
	log     *log.Logger
	done    chan error // receives the end of the running check; nil if none runs
	commit  gitops.OID // what was checked last
	failure error      // why that has no result
	again   time.Time  // when it may be tried again
}

// begin begins the check that a cycle asked for, unless one runs. It is the same one again only after a pause.
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

// pause returns when a check may be tried again that has no result, 0 for never.
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
