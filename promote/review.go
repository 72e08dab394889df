package promote

import (
	"context"
	"fmt"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/decision"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// verdicts returns the user's verdicts, as this cycle applies them.
func (f facts) verdicts() review.Verdicts {
	return f.rules.decisions.Verdicts(f.settings.Review == review.Land && !f.options.Land)
}

// review returns the hold of pending commits that wait for a verdict, or for a fix of the agent. It names the first ones.
func (e *Engine) review(ctx context.Context, f facts) []ledger.Hold {
	verdicts := f.verdicts()
	asked, waiting := decision.Waiting(verdicts, f.ledger.Tail)
	if asked+waiting == 0 {
		return nil
	}
	asks := func(id gitops.OID) bool { return verdicts.Words[id] == review.Fix }
	waits := func(id gitops.OID) bool { return !asks(id) && verdicts.Holds(id) }
	h := ledger.Hold{Reason: ledger.Review, Message: "commits wait until the agent has amended them: " + decision.Subjects(ctx, f.inside, f.ledger.Tail, asked, asks), Next: []string{"git airlock review"}}
	if waiting == 0 {
		return []ledger.Hold{h}
	}
	cause, next := "airlock.review is land", []string{"git airlock review -p", decision.Approve(f.ledger.Tail, waits)}
	if auto, err := f.config.Bool("airlock.autoLand", true); err == nil && !auto {
		cause = "airlock.autoLand is false"
	}
	if mode, err := ReadReview(gitops.Config(e.Record.Settings)); err == nil && mode == review.Land {
		// A value given to start goes before the configuration, and only another start can change it.
		cause = "this airlock was started with --review=land"
		if e.Record.Settings["airlock.review"] == "" {
			cause = "this airlock was started with --no-auto-land"
		}
		next = append(next, "git airlock stop && git airlock start --review=off")
	}
	h.Message, h.Next = fmt.Sprintf("commits wait until you approve them: %s (%s)", decision.Subjects(ctx, f.inside, f.ledger.Tail, waiting, waits), cause), next
	return []ledger.Hold{h}
}

// carryVerdicts adds the verdicts of the team's reviewers, and passes the verdicts on replaced commits on to the amended ones.
func (e *Engine) carryVerdicts(ctx context.Context, f facts, t taken) (_ facts, err error) {
	team := decision.Team{Repo: e.Repo, Inside: f.reader(), Reviewers: e.teams.Named()}
	f.rules.decisions, err = team.Add(ctx, e.Dir(), f.rules.decisions, f.ledger.Tail)
	if err != nil {
		return f, err
	}
	if len(f.rules.decisions.Reviewed) == 0 || f.before.Inner == t.tip {
		return f, nil
	}
	links, _, err := e.unlanded(ctx, f, t.tip)
	if err != nil {
		return f, err
	}
	d, changed, err := decision.Follow(ctx, f.reader(), f.rules.decisions, f.ledger, t.tip, links)
	if err != nil || !changed {
		return f, err
	}
	f.rules.decisions = d
	return f, d.Write(e.Dir())
}

func (f facts) reader() decision.Inside {
	return decision.Inside{Quarantine: f.quarantine, Inspector: f.inside, Memory: f.settings.Limits.Memory}
}

// patchIDs begins to compute the patch-ids for the verdicts that this cycle writes, and returns a function that waits for them.
func (e *Engine) patchIDs(ctx context.Context, d ledger.Decisions, known ledger.GateResults) func() (map[gitops.OID]string, error) {
	ids := sync.OnceValues(func() (map[gitops.OID]string, error) { return decision.PatchIDs(ctx, e.Repo, d, known) })
	go func() { _, _ = ids() }()
	return ids
}
