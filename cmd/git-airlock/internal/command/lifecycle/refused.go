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

// failedFor is how long a server must fail until a run reports it, because agents try again after a short failure.
const failedFor = 30 * time.Second

// noticeRefusals calls act. If a server keeps refusing a credential meanwhile, or keeps failing or answers nothing, or the proxy keeps failing, it
// prints a message, because some agents try again for minutes and show nothing. If the limit of the agent's own credential is used up, it ends
// act and returns [errSpent]. It also returns [errSpent] if the agent then fails by itself: the network writes a refusal down before the agent
// learns of it, so the last look at the refusals finds it.
func noticeRefusals(ctx context.Context, s *session.Session, r airlock.Record, agent *session.Agent, act func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done, ended := make(chan struct{}), make(chan struct{})
	spent := false
	seen := refusals{session: s, record: r, said: map[string]string{}, failing: map[string]time.Time{}, before: cmdline.UsesNow(s.RecentRefusals(r, true))}
	go func() {
		defer close(ended)
		poll := time.NewTicker(refusalPoll)
		defer poll.Stop()
		for !seen.last {
			select {
			case <-poll.C:
			case <-done:
				seen.last = true
			}
			for _, c := range seen.look() {
				if c.Spent() && agent != nil && agent.TakesFrom(c.Variables) {
					spent = true
					cancel(errSpent)
				}
			}
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

// refusals prints what a network refuses, once for each reason.
type refusals struct {
	session     *session.Session
	record      airlock.Record
	last        bool              // the command has ended
	said, found map[string]string // by credential, or by proxy, the reasons that were printed, and those of the last look
	failing     map[string]time.Time
	before      cmdline.Uses // of the credentials, when the command began
}

// look prints what has lasted since the look before, or what there is in the last look. It returns the credentials that it has printed.
func (f *refusals) look() (printed []ui.NetworkCredential) {
	recent := f.session.RecentRefusals(f.record, true)
	found, before := map[string]string{}, f.found
	f.found = found
	lasts := func(name, why string) bool { // it was not said before
		found[name] = why
		if f.said[name] == why || !f.last && before[name] != why {
			return false
		}
		f.said[name] = why
		return true
	}
	if p := cmdline.FailingProxy(recent.Rules.Proxy, recent.Proxy); p != nil && lasts(p.Proxy, p.Reason) {
		f.session.Report.Say("the proxy %s: %s", p.Proxy, p.Reason)
		f.session.Report.Hint(p.Next...)
	}
	failing := map[string]time.Time{}
	for _, c := range cmdline.RefusedCredentials(recent) {
		why, _ := c.Refusal()
		if c.Failing() {
			if !f.before.FailedSince(recent, c.Name) {
				continue
			}
			if failing[c.Name] = f.failing[c.Name]; failing[c.Name].IsZero() {
				failing[c.Name] = ui.Now()
			}
			if why = "failing"; !f.last && c.Silent == 0 && ui.Now().Sub(failing[c.Name]) < failedFor { // the status and the time can change
				continue
			}
		}
		if lasts(c.Name, why) {
			c.Anew = f.session.Store.StopsAfterUse(f.record.ID)
			sayRefused(f.session, c)
			printed = append(printed, c)
		}
	}
	f.failing = failing
	return printed
}

func sayRefused(s *session.Session, c ui.NetworkCredential) {
	why, next := c.Refusal()
	s.Report.Say("the credential %s: %s", c.Name, why)
	if next != "" {
		s.Report.Hint(next)
	}
}
