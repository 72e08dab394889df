package decision

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// rebasedNamed bounds the rebased commits that are listed.
const rebasedNamed = 100

// Rebased lists the newest commits of the agent's history that count as landed because they are rebased forms of landed commits, oldest first.
// found is the newest commit of that history that is not new. What is older than a commit that has landed itself is not listed.
func (in Inside) Rebased(ctx context.Context, l *ledger.Ledger, found gitops.OID) (list []ledger.Rebased, err error) {
	for len(list) < rebasedNamed && l.IsRebased(found) {
		image, _ := l.Image(found)
		c, err := in.Inspector.Commit(ctx, found)
		if err != nil {
			return nil, err
		}
		list = append(list, ledger.Rebased{Inner: found, Commit: image.Outer, Subject: c.Subject()})
		found = c.Parents[0]
	}
	slices.Reverse(list)
	return list, nil
}
