package session

import (
	"context"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// withTrust adds the variables that programs need in a network with rules. If the network sees requests, it also adds those with which
// programs trust the network's certificates. Variables that spec already has win.
func (c resolved) withTrust(spec prison.Spec) (prison.Spec, error) {
	if spec.Network != prison.NetworkAllowlist {
		return spec, nil
	}
	spec.Env = append(network.RetryVariables(), spec.Env...)
	if seen, err := network.SeesRequests(spec.Dir, c.session.Now()); err != nil || !seen {
		return spec, err
	}
	spec.Env = append(network.TrustVariables("/home/"+spec.User), spec.Env...)
	return spec, nil
}

// trustAgain lets programs inside trust the network after a change of rules in a running prison.
func (s *Session) trustAgain(ctx context.Context, r airlock.Record, before, after string) {
	if after == before || after == "" {
		return
	}
	if before == "" {
		s.Report.Say("programs inside do not trust the network's certificates for such a rule before the prison is started again")
		s.Report.Hint("git airlock stop && git airlock start")
	} else {
		s.Report.Say("programs inside that are started from now on trust the network's certificates; running ones may have to be started again")
	}
	s.Prisons().WriteTrust(ctx, r, after)
}
