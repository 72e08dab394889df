package session

import (
	"context"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/inbound"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/snapshot/scan"
)

// Scan searches for secrets in the files that a snapshot of the checked-out commit would contain. It returns the commit and the findings.
func (s *Session) Scan(ctx context.Context) (gitops.Head, scan.Report, error) {
	head, err := inbound.Base(ctx, s.Repo, s.Config)
	if err != nil {
		return head, scan.Report{}, err
	}
	env := s.Environment()
	include, err := env.Include(ctx)
	if err != nil {
		return head, scan.Report{}, err
	}
	report, err := inbound.Scan(ctx, env, head, scan.Scanner{Include: include})
	return head, report, err
}
