package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// refusalPoll is how often a run looks for refused credentials. It reports a refusal that lasts that long.
const refusalPoll = 3 * time.Second

// errSpent is the error of an agent that failed, or was ended, because its credential's own limit is used up. Its status is that of the
// time limit.
var errSpent = fmt.Errorf("the limit of requests: %w", cmdline.EndedWith(124))

// noticeRefusals calls act. If a server keeps refusing a credential meanwhile, or the proxy keeps failing, it prints a message, because some
// agents try again for minutes and show nothing. If the limit of the agent's own credential is used up, it ends act and returns [errSpent]. It also returns
// [errSpent] if the agent then fails by itself: the network writes a refusal down before the agent learns of it, so the last look at
// the refusals finds it.
func noticeRefusals(ctx context.Context, s *session.Session, r airlock.Record, agent *session.Agent, act func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done, ended := make(chan struct{}), make(chan struct{})
	spent := false
	go func() {
		defer close(ended)
		poll := time.NewTicker(refusalPoll)
		defer poll.Stop()
		said, before := map[string]string{}, map[string]string{}
		for last := false; !last; {
			select {
			case <-poll.C:
			case <-done:
				last = true
			}
			now := map[string]string{}
			lasts := func(name, why string) bool { // it was not said before
				now[name] = why
				if said[name] == why || !last && before[name] != why {
					return false
				}
				said[name] = why
				return true
			}
			recent := s.RecentRefusals(r)
			if f := cmdline.FailingProxy(recent.Rules.Proxy, recent.Proxy); f != nil && lasts(f.Proxy, f.Reason) {
				s.Report.Say("the proxy %s: %s", f.Proxy, f.Reason)
				s.Report.Hint(f.Next...)
			}
			for _, c := range cmdline.RefusedCredentials(recent) {
				if why, _ := c.Refusal(); lasts(c.Name, why) {
					c.Anew = s.Store.StopsAfterUse(r.ID)
					sayRefused(s, c)
					if c.Spent() && agent != nil && agent.TakesFrom(c.Variables) {
						spent = true
						cancel(errSpent)
					}
				}
			}
			before = now
		}
	}()
	err := act(ctx)
	close(done)
	<-ended
	status, _ := cmdline.ChildStatus(err)
	failed := status != 0 && !errors.Is(err, errLate)
	stopped := errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), errSpent)
	if spent && failed || stopped {
		return errSpent
	}
	return err
}

// sayRefused prints why a credential does not work.
func sayRefused(s *session.Session, c ui.NetworkCredential) {
	why, next := c.Refusal()
	s.Report.Say("the credential %s: %s", c.Name, why)
	if next != "" {
		s.Report.Hint(next)
	}
}
