package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// Promotion is what somebody wants promoted.
type Promotion struct {
	Options promote.Options
	Rescue  bool                // first commit, as the agent, what it has not committed
	Accept  []policy.Acceptance // let pass what these rules hold
	Drop    []string            // leave these commits out
}

// Promote lands what can land. An [environment.Refusal] says what is held.
func (s *Session) Promote(ctx context.Context, r airlock.Record, p Promotion) error {
	before, err := ledger.TotalLanded(s.Store.Dir(r.ID))
	if err != nil {
		return err
	}
	rescued := ""
	if p.Rescue {
		if rescued, err = s.rescue(ctx, r); err != nil {
			return err
		}
	}
	if err := s.decide(ctx, r, p.Accept, p.Drop); err != nil {
		return err
	}
	return s.addElsewhere(ctx, r, rescued, s.land(ctx, r, p.Options, before))
}

// land makes cycles until nothing more can land, and says how many have landed since there were so many before: the daemon may
// be quicker.
func (s *Session) land(ctx context.Context, r airlock.Record, options promote.Options, before int) error {
	engine := s.Engine(r)
	defer engine.Close()
	if s.Dry {
		state, err := engine.State(ctx)
		s.Report.Say("would promote %s to %s", count(state.Pending, "commit"), gitops.Escape(r.BranchName()))
		return err
	}
	outcome, err := s.drain(ctx, engine, options)
	if err != nil {
		return adviseOnPending(err)
	}
	return s.tellLanded(r, outcome, before)
}

// drain promotes what can land, and reports how far that is.
func (s *Session) drain(ctx context.Context, engine *promote.Engine, options promote.Options) (ledger.Outcome, error) {
	step, end := s.Report.Begin("looking for commits")
	defer end()
	engine.Progress = step
	return engine.Drain(ctx, options)
}

// tellLanded says what has landed since there were so many before. An [environment.Refusal] says what has not.
func (s *Session) tellLanded(r airlock.Record, o ledger.Outcome, before int) error {
	branch, landed := gitops.Escape(r.BranchName()), o.Total-before
	if landed > 0 {
		s.Report.Say("landed %s on %s", count(landed, "commit"), branch)
	}
	s.HintAtNotes(r, o.Total)
	if len(o.Holds) == 0 && o.Pending == 0 {
		if landed <= 0 {
			s.Report.Say("nothing is left to land on %s", branch)
		}
		return nil
	}
	return held(o)
}

// HintAtNotes tells the user once, after the first commit of an airlock has landed, where its notes are shown.
func (s *Session) HintAtNotes(r airlock.Record, landed int) {
	if landed > 0 && s.Store.Tell(r.ID) {
		s.Report.Hint("git log --notes=airlock  # shows where landed commits came from")
	}
}

// held returns the refusal of an outcome that holds.
func held(o ledger.Outcome) error {
	if len(o.Holds) == 0 {
		return &environment.Refusal{Text: count(o.Pending, "commit") + " still pending", Next: []string{"git airlock promote"}}
	}
	h := o.Holds[0]
	text := fmt.Sprintf("held (%s): %s", h.Reason, h.Message)
	if o.Pending > 0 {
		text = fmt.Sprintf("%s pending, %s", count(o.Pending, "commit"), text)
	}
	return &environment.Refusal{Text: text, Next: h.Next}
}

// ResolveConflict hands the user the conflict that is held. They finish it as they finish any merge.
func (s *Session) ResolveConflict(ctx context.Context, r airlock.Record) error {
	if s.Dry {
		s.Report.Say("would start a merge of the first commit that conflicts into %s", gitops.Escape(r.BranchName()))
		return nil
	}
	engine := s.Engine(r)
	defer engine.Close()
	if _, err := s.drain(ctx, engine, promote.Options{}); err != nil {
		return err
	}
	commit, err := engine.Resolve(ctx)
	if errors.Is(err, promote.ErrNoConflict) {
		s.Report.Say("%s", err)
		return nil
	}
	if err != nil {
		return err
	}
	return &environment.Refusal{
		Text: fmt.Sprintf("merging %.12s into %s; resolve what conflicts and commit, then landing goes on", commit, gitops.Escape(r.BranchName())),
		Next: []string{"git status", "git commit", "git merge --abort"}}
}

// decide writes down what the user wants done with commits that a rule holds.
func (s *Session) decide(ctx context.Context, r airlock.Record, accept []policy.Acceptance, drop []string) error {
	if s.Dry {
		for _, w := range accept {
			s.Report.Say("would let pass what %s holds", gitops.Escape(w.String()))
		}
		for _, name := range drop {
			s.Report.Say("would leave out %s", gitops.Escape(name))
		}
		return nil
	}
	engine := s.Engine(r)
	defer engine.Close()
	if len(accept) > 0 {
		passed, err := engine.Accept(ctx, accept)
		if err := adviseOnPending(err); err != nil {
			return err
		}
		s.tellDecided("accepted", passed)
	}
	if len(drop) > 0 {
		left, err := engine.Drop(ctx, drop)
		if err := adviseOnPending(err); err != nil {
			return err
		}
		s.tellDecided("dropped", left)
	}
	return nil
}

func (s *Session) tellDecided(what string, commits []promote.Decided) {
	for _, d := range commits {
		s.Report.Say("%s: %.12s %s", what, d.Commit, d.Subject)
	}
}

// adviseOnPending says where to look for the commits that can be decided on.
func adviseOnPending(err error) error {
	if errors.Is(err, promote.ErrNotHeld) || errors.Is(err, history.ErrNotPending) {
		return environment.Advise(err, "git airlock policy", "git airlock status")
	}
	return err
}

// rescueScript commits everything, with no hook of the workspace's, and prints where the commit is.
var rescueScript = []string{"sh", "-c", `git -c core.hooksPath=/dev/null add -A >&2 &&
if ! git diff --cached --quiet; then
git -c core.hooksPath=/dev/null commit -q --no-verify -m 'Uncommitted work' >&2 && { git symbolic-ref -q HEAD || echo HEAD; }
fi`}

const (
	// maxSaid bounds what is kept of what a short command inside says.
	maxSaid = 4096
	// rescueTime bounds the commit that git makes in the workspace, where it may meet anything.
	rescueTime = time.Minute
)

// rescue makes one commit of what the agent has not committed, and returns the ref that it is on, by the workspace's word.
func (s *Session) rescue(ctx context.Context, r airlock.Record) (ref string, err error) {
	if s.Dry {
		s.Report.Say("would commit what is not committed in the workspace")
		return "", nil
	}
	box, err := s.prisons().attach(ctx, r)
	if err != nil {
		return "", err
	}
	defer box.Close()
	said, where := prison.Capped{Max: maxSaid}, prison.Capped{Max: maxSaid}
	bounded, cancel := context.WithTimeout(ctx, rescueTime)
	defer cancel()
	status, err := box.Exec(bounded, prison.Process{Argv: rescueScript, Stdout: &where, Stderr: &said})
	if errors.Is(bounded.Err(), context.DeadlineExceeded) {
		return "", fmt.Errorf("commit what is not committed: git in the workspace did not end within %s", rescueTime)
	}
	if err != nil {
		return "", err
	}
	if status != 0 {
		return "", fmt.Errorf("commit what is not committed: %s", gitops.Escape(said.String()))
	}
	return strings.TrimSpace(where.String()), nil
}

// addElsewhere adds to the result of promoting, nil or an [environment.Refusal], that the commit a rescue made on a ref does
// not land: only main does. Where ref is empty the rescue made none.
func (s *Session) addElsewhere(ctx context.Context, r airlock.Record, ref string, promoted error) error {
	var held *environment.Refusal
	if ref == "" || ref == gitops.InnerMain || promoted != nil && !errors.As(promoted, &held) {
		return promoted
	}
	engine := s.Engine(r)
	defer engine.Close()
	state, err := engine.State(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(state.Waiting, func(w promote.Waiting) bool { return w.Name == ref })
	if i < 0 { // of many refs not each is told
		i = slices.IndexFunc(state.Waiting, func(w promote.Waiting) bool { return w.Name == "" })
	}
	if i < 0 {
		return promoted // it has landed all the same, with --from
	}
	if held != nil {
		s.Report.Say("%s", held.Text)
		s.Report.Hint(held.Next...)
	}
	w := state.Waiting[i]
	return &environment.Refusal{
		Text: fmt.Sprintf("what was not committed is on %s now, which does not land by itself: %s", w.Ref, count(w.Commits, "commit")),
		Next: []string{MergeCommand(w)}}
}

// MergeCommand returns the command that merges the commits of an inner ref into main, where they land, wherever the agent's
// HEAD is.
func MergeCommand(w promote.Waiting) string {
	from := gitops.ShellQuote(w.Name)
	switch w.Name {
	case "":
		return "git airlock visit -- git for-each-ref"
	case "refs/stash":
		return "git airlock visit -- git stash pop"
	case "HEAD": // which is another one on main
		from = "@{-1}"
	}
	return "git airlock visit -- sh -c " + gitops.Pasteable("git checkout main && git merge --no-edit "+from)
}
