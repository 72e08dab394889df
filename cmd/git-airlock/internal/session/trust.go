package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

const (
	// trustPatience bounds the time for writing certificates.
	trustPatience = 10 * time.Second
	// maxComplaint bounds what a failed script may say.
	maxComplaint = 200
)

// withTrust adds the variables for a network with rules, and those for certificates if it sees requests. The user's own variables win.
func (c resolved) withTrust(spec prison.Spec) (prison.Spec, error) {
	if spec.Network != prison.NetworkAllowlist {
		return spec, nil
	}
	spec.Env = append(network.RetryVariables(), spec.Env...)
	rules, err := control.ReadRules(spec.Dir)
	if err != nil || !network.SeesRequests(rules, c.session.Now()) {
		return spec, err
	}
	spec.Env = append(network.TrustVariables("/home/"+spec.User), spec.Env...)
	return spec, nil
}

// trust lets programs in a prison that was just started trust the network where it answers for servers. If that fails, the agent has
// prevented it, and only its own programs suffer.
func (s *Session) trust(ctx context.Context, r airlock.Record) error {
	spec, err := s.Prisons().Spec(r)
	if err != nil || spec.Network != prison.NetworkAllowlist {
		return err
	}
	rules, err := control.ReadRules(spec.Dir)
	if err != nil || !network.SeesRequests(rules, s.Now()) {
		return err
	}
	certificates, err := network.AwaitAuthorities(ctx, spec.Dir)
	if err != nil {
		return err
	}
	s.writeTrust(ctx, r, certificates)
	return nil
}

// trustAgain does the same after a change of rules in a running prison.
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
	s.writeTrust(ctx, r, after)
}

// writeTrust writes certificates into the home inside, as the agent.
func (s *Session) writeTrust(ctx context.Context, r airlock.Record, certificates string) {
	ctx, cancel := context.WithTimeout(ctx, trustPatience)
	defer cancel()
	err := func() error {
		box, err := s.Prisons().Attach(ctx, r)
		if err != nil {
			return err
		}
		defer box.Close()
		complaint := prison.Capped{Max: maxComplaint}
		status, err := box.Exec(ctx, prison.Process{
			Argv: []string{"/bin/sh", "-c", network.TrustScript}, Stdin: strings.NewReader(certificates), Stderr: &complaint,
		})
		if err == nil && status != 0 {
			err = fmt.Errorf("exit status %d: %s", status, gitops.Text(strings.TrimSpace(string(complaint.Bytes()))))
		}
		return err
	}()
	if err != nil {
		s.Report.Say("programs inside do not trust the network's certificates: write %s: %s", network.TrustFolder, gitops.Text(err.Error()))
	}
}
