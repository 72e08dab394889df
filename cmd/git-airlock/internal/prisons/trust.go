package prisons

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

const (
	// trustPatience bounds the time for writing certificates.
	trustPatience = 10 * time.Second
	// maxComplaint bounds what a failed script may say.
	maxComplaint = 200
)

// Authorities returns the certificates of authorities that were added to this machine, see [network.Added].
func Authorities(now time.Time) string {
	return network.Added(identity.HostName(), identity.UserNames(), now)
}

// Trust lets programs in a prison trust the certificates with which the network answers for servers, and those that were added to this
// machine. It is called after the network has begun. If writing them fails, the agent has prevented that, and only the agent's own programs suffer.
func (p Prisons) Trust(ctx context.Context, r airlock.Record, now time.Time) error {
	certificates, err := network.Certificates(ctx, p.Spec(r), now)
	if err != nil || certificates == "" {
		return err
	}
	p.WriteTrust(ctx, r, certificates)
	return nil
}

// WriteTrust writes certificates into the home inside, as the agent.
func (p Prisons) WriteTrust(ctx context.Context, r airlock.Record, certificates string) {
	if err := p.writeTrust(ctx, r, certificates); err != nil {
		p.Report.Say("programs inside do not trust some certificates: write %s: %s", network.TrustFolder, gitops.Text(err.Error()))
	}
}

func (p Prisons) writeTrust(ctx context.Context, r airlock.Record, certificates string) error {
	ctx, cancel := context.WithTimeout(ctx, trustPatience)
	defer cancel()
	box, err := p.Attach(ctx, r)
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
}
