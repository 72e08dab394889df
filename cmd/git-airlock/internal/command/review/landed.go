package review

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/pushcheck"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/outgoing"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// verdictGarbage is how much the heap may grow, in percent, before Go collects garbage. A verdict needs about 15 MB in all, and
// with Go's default the collections took a tenth of the processor time.
const verdictGarbage = 400

// onCommits makes an action of a function that reads the request for a verdict. With airlock.review=push the verdict can also be about
// landed commits, even after their airlock was cleared.
func onCommits(wanted func(*cli.Context) (verdict.Request, error)) cli.ActionFunc {
	return cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
		defer debug.SetGCPercent(debug.SetGCPercent(verdictGarbage))
		w, err := wanted(c)
		if err != nil {
			return err
		}
		landed, waiting, err := landedPart(c.Context, s, w)
		if err != nil {
			return err
		}
		kept, err := keptLanded(c.Context, s, w, waiting, landed)
		if err != nil {
			return err
		}
		// Decide on waiting commits first: if a name stands for no commit, decide refuses before it records anything.
		if len(waiting.Names) > 0 || waiting.UpTo != "" || waiting.All || len(landed) == 0 && kept == nil {
			err = cmdline.WithAirlock(c, s, func(c *cli.Context, s *session.Session, r airlock.Record) error {
				return decide(c.Context, s, r, waiting, len(landed))
			})
		}
		if len(landed) > 0 && len(waiting.Names) == 0 && waiting.UpTo == "" && errors.Is(err, session.ErrNoAirlock) {
			err = nil // with --all and no airlock, there are only landed commits
		}
		if err != nil {
			return err
		}
		if err = decideLanded(c.Context, s, w, landed); err != nil || kept == nil {
			return err
		}
		return kept
	})
}

// keptLanded returns the refusal for the landed commit of --upto if the commit keeps a verdict to the contrary. waiting is the
// part of the request that is not about landed commits, and decided are the landed commits that get another verdict.
func keptLanded(ctx context.Context, s *session.Session, wanted, waiting verdict.Request, decided []outgoing.Commit) (*environment.Refusal, error) {
	if wanted.UpTo == waiting.UpTo {
		return nil, nil // none, or not a landed commit
	}
	last, landed, err := pushcheck.Named(ctx, s, wanted.UpTo)
	if err != nil || !landed || last.Passes() || slices.ContainsFunc(decided, func(x outgoing.Commit) bool { return x.ID == last.ID }) {
		return nil, err
	}
	back, against := contrary[last.State()]
	if !against {
		return nil, nil
	}
	return &environment.Refusal{Text: fmt.Sprintf("%.12s (%s) waits: %s", last.ID, last.Subject, back.why),
		Next: []string{fmt.Sprintf("git airlock approve %.12s  # %s", last.ID, back.what)}}, nil
}

// onList makes an action of a function that shows commits. With airlock.review=push it also works without an airlock.
func onList(act func(*cli.Context, *session.Session, airlock.Record) error) cli.ActionFunc {
	return cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
		if r, err := hereOrNone(c.Context, s); err == nil && r.ID == "" {
			return act(c, s, r)
		}
		return cmdline.WithAirlock(c, s, act)
	})
}

// hereOrNone returns the airlock here. With airlock.review=push it returns a record without an id if there is none.
func hereOrNone(ctx context.Context, s *session.Session) (airlock.Record, error) {
	r, err := s.Here(ctx)
	if errors.Is(err, session.ErrNoAirlock) {
		if asks, bad := pushcheck.Asks(s); bad == nil && asks {
			err = nil
		}
	}
	return r, err
}

// landedOf lists the landed commits that some names stand for. If there are no names, it lists the landed commits that may not be
// pushed yet. rest are the names that stand for no landed commit.
func landedOf(ctx context.Context, s *session.Session, names []string) (list []reviewed, rest []string, err error) {
	found, left, err := landedPart(ctx, s, verdict.Request{Names: names, All: len(names) == 0})
	if err != nil || len(found) == 0 {
		return nil, left.Names, err
	}
	var ids []gitops.OID
	for _, x := range found {
		ids = append(ids, x.ID)
	}
	stats, err := s.Repo.Bare().AllStats(ctx, ids)
	for _, x := range found {
		last := x.Last()
		shown := reviewedOf(verdict.Reviewable{State: x.State(), Commit: x.ID, Inner: gitops.OID(x.Note["Inner-Commit"]), Subject: x.Subject.String(),
			Files: stats[x.ID], Reason: gitops.Text(last.Reason).String(), By: gitops.Text(last.By).String(), At: last.At})
		shown.landed = true
		list = append(list, shown)
	}
	return list, left.Names, err
}

// landedPart is landedIn with airlock.review=push. Otherwise it returns no commit, and the whole request.
func landedPart(ctx context.Context, s *session.Session, wanted verdict.Request) (chosen []outgoing.Commit, rest verdict.Request, err error) {
	asks, err := pushcheck.Asks(s)
	if err != nil || !asks {
		return nil, wanted, err
	}
	return landedIn(ctx, s, wanted)
}

func decideLanded(ctx context.Context, s *session.Session, wanted verdict.Request, chosen []outgoing.Commit) error {
	if len(chosen) == 0 {
		return nil
	}
	err := pushcheck.Record(ctx, s, wanted.Word, wanted.Reason, chosen)
	if errors.Is(err, review.ErrReason) {
		return ui.Usagef("--message: %s", err)
	}
	if err != nil {
		return err
	}
	here, err := s.Here(ctx)
	for _, x := range chosen {
		sayDecided(s, wanted.Word, x.ID, x.Subject.String())
		if err == nil && !s.Dry {
			events.Verdict(s.Store.Dir(here.ID), here.Session, wanted.Word, x.ID, x.Subject.String(), wanted.Reason)
		}
	}
	if wanted.Word != review.Approve {
		s.Report.Say("it has landed, and stays on the branch until you take it back")
		s.Report.Hint("git airlock undo  # or: git airlock undo --revert", "git airlock log --ops")
	}
	return nil
}

// landedIn splits a request: it returns the landed commits that the request is about, and the request for the other commits. Up to a landed
// commit, these are the commit and its ancestors: another order is by dates, which are the agent's.
func landedIn(ctx context.Context, s *session.Session, wanted verdict.Request) (chosen []outgoing.Commit, rest verdict.Request, err error) {
	rest = wanted
	rest.Names = nil
	for _, name := range wanted.Names {
		one, found, err := pushcheck.Named(ctx, s, name)
		if err != nil {
			return nil, rest, err
		}
		if found {
			chosen = append(chosen, one)
		} else {
			rest.Names = append(rest.Names, name)
		}
	}
	if !wanted.All && wanted.UpTo == "" {
		return chosen, rest, nil
	}
	var made []outgoing.Commit
	if wanted.UpTo == "" {
		made, err = pushcheck.Made(ctx, s)
	} else if last, landed, bad := pushcheck.Named(ctx, s, wanted.UpTo); bad != nil || !landed {
		return chosen, rest, bad // the landed commits before a pending one do not wait for it
	} else {
		rest.UpTo = ""
		made, err = pushcheck.MadeOn(ctx, s, last.ID)
	}
	for _, x := range made {
		if !x.Passes() && (wanted.Word == "" || x.Last().Word == "") { // a list shows rejected ones, too
			chosen = append(chosen, x)
		}
	}
	return chosen, rest, err
}
