// Package pushcheck finds the landed commits that need a verdict before they are pushed (airlock.review=push). It prints
// nothing.
package pushcheck

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/outgoing"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/teams"
)

// Asks reports whether commits need a verdict before they are pushed: by the configuration, or because an airlock of the
// repository was started with --review=push. An airlock whose record cannot be read may have been.
func Asks(s *session.Session) (bool, error) {
	mode, err := promote.ReadReview(s.Config)
	if err != nil || mode == review.Push {
		return err == nil, err
	}
	if damaged, err := s.Store.Damaged(); err != nil || len(damaged) > 0 {
		return err == nil, err
	}
	all, err := s.Store.List()
	for _, r := range all {
		if mode, err := promote.ReadReview(s.Config.With(r.Settings)); err == nil && mode == review.Push {
			return true, nil
		}
	}
	return false, err
}

// Outgoing returns the commits of agents that a push sends and that may not be pushed yet, oldest first. in is the standard
// input of the pre-push hook, and remote its first argument. Without review before a push it returns none.
func Outgoing(ctx context.Context, s *session.Session, in io.Reader, remote string) ([]outgoing.Commit, error) {
	updates, err := outgoing.ReadUpdates(in)
	if err != nil {
		return nil, err
	}
	if asks, err := Asks(s); err != nil || !asks {
		return nil, err
	}
	return unapproved(ctx, s, outgoing.RangeOf(updates, remote))
}

func unapproved(ctx context.Context, s *session.Session, in outgoing.Range) (waiting []outgoing.Commit, err error) {
	who := reviewers(ctx, s)
	all, err := outgoing.Find(ctx, s.Repo, s.Store, in, who)
	if err != nil {
		return nil, err
	}
	trees, err := outgoing.FindTrees(ctx, s.Repo, s.Store, in, who)
	for _, c := range slices.Concat(all, trees) {
		known := func(w outgoing.Commit) bool { return w.ID == c.ID }
		if !c.Passes() && !slices.ContainsFunc(waiting, known) {
			waiting = append(waiting, c)
		}
	}
	return waiting, err
}

// reviewers returns the people whose verdicts count in a repository.
func reviewers(ctx context.Context, s *session.Session) outgoing.Reviewers {
	user, _ := identity.ResolveUser(s.Config) // without an identity, only the team's reviewers count
	team := sync.OnceValues(func() ([]string, error) { return teams.Reviewers(ctx, s.Repo) })
	return outgoing.Reviewers{User: user.Mail, Team: func(context.Context) ([]string, error) { return team() }}
}

// Made returns the commits of agents on the checked-out branch and on the branch of the airlock here that no remote has, oldest first, with
// their verdicts. Without review before a push it returns none.
func Made(ctx context.Context, s *session.Session) ([]outgoing.Commit, error) {
	if asks, err := Asks(s); err != nil || !asks {
		return nil, err
	}
	if r, err := s.Store.Here(); err == nil && r != nil {
		return MadeIn(ctx, s, *r)
	}
	head, err := s.Repo.Head(ctx)
	if err != nil {
		return nil, err
	}
	return MadeOn(ctx, s, head.Commit)
}

// MadeIn is [Made] for an airlock, which can be another worktree's. It does not check whether pushes need a review.
func MadeIn(ctx context.Context, s *session.Session, r airlock.Record) ([]outgoing.Commit, error) {
	head := "main-worktree/HEAD"
	if r.Worktree != "" {
		head = "worktrees/" + r.Worktree + "/HEAD"
	}
	checkedOut, _ := s.Repo.Commit(ctx, head) // there is none on an unborn branch, and in a worktree that was removed
	tip, err := s.Repo.Ref(ctx, r.Branch)
	if err != nil {
		return nil, err
	}
	return MadeOn(ctx, s, tip, checkedOut)
}

// MadeOn is [Made] for the tips of branches, or for commits. An empty tip, as of a branch that does not exist any more, has no commits. MadeOn
// does not check whether pushes need a review.
func MadeOn(ctx context.Context, s *session.Session, tips ...gitops.OID) ([]outgoing.Commit, error) {
	tips = slices.DeleteFunc(tips, func(tip gitops.OID) bool { return tip == "" })
	return outgoing.Find(ctx, s.Repo, s.Store, outgoing.Range{Tips: tips, Remote: "*"}, reviewers(ctx, s))
}

// Named returns the commit of an agent that a revision names, if a branch or tag has it. found is false for a pending commit.
func Named(ctx context.Context, s *session.Session, revision string) (c outgoing.Commit, found bool, err error) {
	id, err := s.Repo.Commit(ctx, revision)
	if err != nil || !s.Repo.Contained(ctx, id) {
		return c, false, nil
	}
	list, err := outgoing.Find(ctx, s.Repo, s.Store, outgoing.Range{Tips: []gitops.OID{id}, Single: true}, reviewers(ctx, s))
	if len(list) == 0 {
		return c, false, err
	}
	return list[0], true, err
}

// Record records a verdict of the user on landed commits.
func Record(ctx context.Context, s *session.Session, word review.Word, reason string, commits []outgoing.Commit) error {
	if len(reason) > review.ReasonLimit {
		return review.ErrReason
	}
	user, err := identity.ResolveUser(s.Config)
	if err != nil || s.Dry {
		return err
	}
	// Unlike in other files, the time has fractions of a second, since the newest verdict decides.
	v := review.Verdict{Word: word, By: user.String(), At: s.Now().UTC(), Reason: reason}
	return outgoing.Record(ctx, s.Repo, v, commits)
}
