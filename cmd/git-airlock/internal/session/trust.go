package session

import (
	"context"

	"github.com/git-airlock/git-airlock/promote/airlock"
)

// trustAgain lets programs inside trust other certificates after a change of rules in a running prison.
func (s *Session) trustAgain(ctx context.Context, r airlock.Record, before, after string) {
	if before == "" {
		s.Report.Say("programs inside do not trust the network's certificates for such a rule before the prison is started again")
		s.Report.Hint("git airlock stop && git airlock start")
	} else {
		s.Report.Say("programs inside that are started from now on trust the network's certificates; running ones may have to be started again")
	}
	s.Prisons().WriteTrust(ctx, r, after)
}
