package lifecycle

import (
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/edge"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// refusalPoll is how often a run looks for refused credentials. It reports a refusal that lasts that long.
const refusalPoll = 3 * time.Second

// noticeRefusals prints a message when a server goes on to refuse a credential while a command runs, because some agents try again
// for minutes and show nothing. The returned function ends that, and prints the refusals that were not printed.
func noticeRefusals(s *session.Session, r airlock.Record) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		poll := time.NewTicker(refusalPoll)
		defer poll.Stop()
		said, before := map[string]int{}, map[string]int{}
		for {
			last := false
			select {
			case <-poll.C:
			case <-done:
				last = true
			}
			now := map[string]int{}
			for _, c := range edge.RefusedCredentials(s.RecentRefusals(r)) {
				now[c.Name] = c.Status
				if said[c.Name] != c.Status && (last || before[c.Name] == c.Status) {
					said[c.Name] = c.Status
					sayRefused(s, c)
				}
			}
			before = now
			if last {
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// sayRefused prints what a server's refusal of a credential means.
func sayRefused(s *session.Session, c ui.NetworkCredential) {
	meaning, next := c.Refusal()
	s.Report.Say("the credential %s: %s answered %d: %s", c.Name, c.Hosts, c.Status, meaning)
	if next != "" {
		s.Report.Hint(next)
	}
}
