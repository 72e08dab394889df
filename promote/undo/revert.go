package undo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/words"
)

// Revert makes one commit of the user that takes a landing back: the landing with a number, or the newest that stands if number is 0. It
// returns the landing and the commit. Unlike [Undo], it does not refuse because of later commits on the branch, unless they conflict. A
// dry run returns no commit.
func Revert(ctx context.Context, e *promote.Engine, number int) (o operation.Operation, made gitops.OID, err error) {
	s, err := open(ctx, e)
	if err != nil {
		return o, "", err
	}
	defer s.Close()
	if o, _, err = s.chain.Find(number); err != nil {
		return o, "", err
	}
	tip, err := s.tip(ctx)
	if err != nil {
		return o, "", err
	}
	tree, err := s.without(ctx, o, tip)
	if err == nil && tree == "" {
		err = s.gone(o)
	}
	if err != nil || e.Repo.Dry {
		return o, "", err
	}
	if made, err = s.commit(ctx, o, tip, tree); err != nil {
		return o, "", err
	}
	return o, made, s.land(ctx, operation.Operation{Kind: operation.Revert, Of: o.Number, Before: tip, After: made}, s.ref("promoted"), renoted{})
}

// without returns the tree of the branch without the changes of a landing, or empty if the branch has none of them. The error is a *[Refused]
// if they cannot be taken out.
func (s *standing) without(ctx context.Context, o operation.Operation, tip gitops.OID) (gitops.OID, error) {
	bridge, inspector, err := s.Bridge(ctx)
	if err != nil {
		return "", err
	}
	var trees [3]gitops.OID
	for i, id := range []gitops.OID{o.After, tip, o.Before} {
		c, err := inspector.Commit(ctx, id)
		if err != nil {
			return "", err
		}
		trees[i] = c.Tree
	}
	tree, conflicts, err := bridge.Merge(ctx, quarantine.Merge{Base: trees[0], Ours: trees[1], Theirs: trees[2]})
	byHand := fmt.Sprintf("git revert --no-commit %s..%s", o.Before, o.After)
	if gitops.Crashed(err) {
		return "", &Refused{fmt.Sprintf("git cannot revert operation %d: %s", o.Number, gitops.Text(words.OneLine(err))),
			append(hold.MoreTime(err), fmt.Sprintf("git airlock undo --revert %d  # tries again", o.Number), byHand)}
	}
	if err != nil {
		return "", err
	}
	if len(conflicts) > 0 {
		return "", &Refused{fmt.Sprintf("later commits changed the same lines as operation %d: %s", o.Number, shown(conflicts)), []string{byHand}}
	}
	if tree == trees[1] {
		return "", nil
	}
	return tree, nil
}

// gone returns the refusal for a landing of which the branch has no change, for example after a reset behind it.
func (s *standing) gone(o operation.Operation) error {
	return &Refused{Message: fmt.Sprintf("%s has no change of operation %d to take back", s.e.Record.BranchName(), o.Number)}
}

// commit makes the user's commit with the tree that takes a landing back, and gives it to the repository.
func (s *standing) commit(ctx context.Context, o operation.Operation, tip, tree gitops.OID) (gitops.OID, error) {
	bridge, inspector, err := s.Bridge(ctx)
	if err != nil {
		return "", err
	}
	message, err := s.message(ctx, inspector, o, tip)
	if err != nil {
		return "", err
	}
	ident := fmt.Sprintf("%s %d %s", s.Settings.User, s.Now.Unix(), s.Now.Format("-0700"))
	c := gitops.Commit{Tree: tree, Parents: []gitops.OID{tip}, Author: ident, Committer: ident, Message: []byte(message)}
	var id gitops.OID
	if s.Settings.Sign {
		id, err = bridge.Sign(ctx, c)
	} else {
		id = bridge.Make("commit", c.Bytes())
	}
	if err != nil {
		return "", err
	}
	return id, bridge.Give(ctx, inspector, id, []gitops.OID{tip, o.Before, o.After})
}

// message returns the message of the commit that takes a landing back. It names the landed commits that the branch has. The user may have reset the
// branch behind others, or amended them.
func (s *standing) message(ctx context.Context, inspector *quarantine.Inspector, o operation.Operation, tip gitops.OID) (string, error) {
	gone, err := s.e.Repo.Unreached(ctx, []gitops.OID{o.After}, []gitops.OID{tip})
	if err != nil {
		return "", err
	}
	left := gitops.SetOf(gone...)
	reverted := slices.DeleteFunc(slices.Clone(o.Landed), func(p ledger.Pair) bool { return left[p.Outer] })
	title := fmt.Sprintf("Revert %d commits of airlock %s", len(reverted), s.e.Record.ID)
	switch {
	case len(reverted) == 1 || len(o.Landed) == 1:
		c, err := inspector.Commit(ctx, append(reverted, o.Landed...)[0].Outer)
		if err != nil {
			return "", err
		}
		title = `Revert "` + c.Subject() + `"` // as git revert has it
	case len(reverted) == 0:
		title = fmt.Sprintf("Revert operation %d of airlock %s", o.Number, s.e.Record.ID)
	}
	lines := []string{title, ""}
	for _, p := range reverted {
		lines = append(lines, fmt.Sprintf("This reverts commit %s.", p.Outer))
	}
	return strings.TrimSpace(strings.Join(lines, "\n")) + "\n", nil
}
