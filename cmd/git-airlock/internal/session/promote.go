package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checking"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/decision"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
	"github.com/git-airlock/git-airlock/words"
)

// Promotion is a request to promote commits.
type Promotion struct {
	Options promote.Options
	Rescue  bool                // first commit the agent's uncommitted changes, as the agent
	Accept  []policy.Acceptance // accept the commits that these rules hold
	Commits []string            // the commits to accept; none: all that the rules hold now
	Drop    []string            // leave these commits out
}

// Promote lands pending commits. An [environment.Refusal] describes the hold, if there is one.
func (s *Session) Promote(ctx context.Context, r airlock.Record, p Promotion) error {
	before, err := ledger.TotalLanded(s.Store.Dir(r.ID))
	if err != nil {
		return err
	}
	rescued := ""
	switch {
	case p.Rescue && s.Dry:
		s.Report.Say("would commit the uncommitted changes in the workspace")
	case p.Rescue:
		var places []inner.Place
		if rescued, places, err = s.Prisons().Rescue(ctx, r); err != nil {
			return err
		}
		defer s.tellLeft(r, places)
	}
	l := s.landing(r)
	l.engine.Settings = s.Settings
	defer l.engine.Close()
	if err := l.decide(ctx, p); err != nil {
		return err
	}
	if s.Dry {
		if _, err := promote.ReadSettings(s.Config.With(r.Settings)); err != nil { // status, which also reads the state, works without them
			return err
		}
		return adviseOnPending(l.wouldLand(ctx, p.Options, len(p.Accept)+len(p.Drop) > 0))
	}
	return l.addElsewhere(ctx, rescued, p.Options.From, l.land(ctx, p.Options, before))
}

// SeePlace returns the command that shows the work in a place.
func SeePlace(p inner.Place) string { return hold.See(p, prison.Workspace) }

// tellLeft prints the work that a rescue has left where it is.
func (s *Session) tellLeft(r airlock.Record, places []inner.Place) {
	for _, work := range hold.Works(places) {
		s.Report.Say("--rescue leaves out %s", work)
	}
	s.Report.Hint(hold.KeepFirst(places, prison.Workspace, r.ID)...)
}

// landing promotes the commits of an airlock and prints the result.
type landing struct {
	session *Session
	engine  *promote.Engine // the caller closes it
}

func (s *Session) landing(r airlock.Record) landing { return landing{s, s.Engine(r)} }

// land runs cycles until no more commits can land. It prints the number of commits landed since the total was before, because the
// daemon may have landed some of them.
func (l landing) land(ctx context.Context, options promote.Options, before int) error {
	outcome, err := l.drain(ctx, options)
	if err != nil {
		return adviseOnPending(err)
	}
	return l.tellLanded(outcome, before)
}

// wouldLand prints what land would do. An [environment.Refusal] describes the hold that the next cycle finds, unless the user has decided on
// a commit, which may end it.
func (l landing) wouldLand(ctx context.Context, options promote.Options, decided bool) error {
	state, err := l.engine.Foresee(ctx, options)
	if err != nil {
		return err
	}
	if state.Pending > 0 && len(state.Holds) > 0 && !decided {
		return l.held(ledger.Outcome{Holds: state.Holds, Pending: state.Pending})
	}
	l.session.Report.Say("would promote %s to %s", words.Count(state.Pending, "commit"), l.engine.Record.BranchName())
	return nil
}

// drain promotes all commits that can land, and returns the outcome.
func (l landing) drain(ctx context.Context, options promote.Options) (ledger.Outcome, error) {
	step, end := l.session.Report.Begin("looking for commits")
	defer end()
	l.engine.Progress = step
	return l.engine.Drain(ctx, options)
}

// tellLanded prints the number of commits landed since before. An [environment.Refusal] describes those that have not landed.
func (l landing) tellLanded(o ledger.Outcome, before int) error {
	branch, landed := l.engine.Record.BranchName(), o.Total-before
	if landed > 0 {
		l.session.Report.Say("landed %s on %s", words.Count(landed, "commit"), branch)
	}
	if o.OffMain > 0 {
		l.session.Report.Say("the agent's main does not have %s of these; they stay on %s", words.Count(o.OffMain, "commit"), branch)
		l.session.Report.Hint(ledger.WithStart([]string{"git airlock sync  # brings them to the agent's main"}, l.runs())...)
	}
	l.session.HintAtNotes(l.engine.Record.ID, o.Total)
	if len(o.Holds) == 0 && o.Pending == 0 {
		if landed <= 0 {
			l.session.Report.Say("nothing is left to land on %s", branch)
		}
		return nil
	}
	return l.held(o)
}

// Elsewhere returns the state of an airlock, with the commits on other inner refs than main. A run has read it when its commits have landed.
func (s *Session) Elsewhere(ctx context.Context, r airlock.Record) (promote.State, error) {
	if s.left != nil {
		return *s.left, nil
	}
	engine := s.Engine(r)
	defer engine.Close()
	return engine.State(ctx)
}

// tellElsewhere prints which commits are on other inner refs than main, with the commands that let them land.
func (l landing) tellElsewhere(state promote.State) {
	const most = 3
	for _, w := range state.OtherRefs[:min(most, len(state.OtherRefs))] {
		l.session.Report.Say("%s on %s, which does not land by itself", words.Count(w.Commits, "commit"), w.Ref)
		l.session.Report.Hint(ledger.WithStart([]string{hold.Merge(w.Name, state.Operation)}, l.runs())...)
	}
	if more := len(state.OtherRefs) - most; more > 0 {
		l.session.Report.Say("%s with commits, too", words.Count(more, "other ref"))
		l.session.Report.Hint("git airlock status")
	}
}

// keepHint keeps the hint of [Session.HintAtNotes] from users whose repository has notes already.
func (s *Session) keepHint(ctx context.Context, id string) {
	if notes, err := s.Repo.Ref(ctx, promote.NotesRef); err == nil && notes != "" {
		s.Store.MarkHintShown(id)
	}
}

// HintAtNotes prints once in a repository, after the first commit has landed, how to show the notes.
func (s *Session) HintAtNotes(id string, landed int) {
	if landed > 0 && s.Store.MarkHintShown(id) {
		s.Report.Hint("git airlock log  # shows where landed commits come from")
	}
}

// runs reports whether a hint can use the prison. If that is not known, the prison counts as running.
func (l landing) runs() bool {
	if l.engine.Record.Phase != airlock.Running {
		return false
	}
	runs, err := l.session.Prisons().Runs(context.Background(), l.engine.Record)
	return runs || err != nil
}

// held returns the refusal for an outcome with a hold.
func (l landing) held(o ledger.Outcome) error {
	if len(o.Holds) == 0 {
		return &environment.Refusal{Text: words.Count(o.Pending, "commit") + " still pending", Next: []string{"git airlock promote"}}
	}
	h := o.Holds[0]
	text := fmt.Sprintf("held (%s): %s", h.Reason, h.Message)
	if o.Pending > 0 {
		text = fmt.Sprintf("%s pending, %s", words.Count(o.Pending, "commit"), text)
	}
	return &environment.Refusal{Text: text, Next: ledger.WithStart(h.Next, l.runs())}
}

// ResolveConflict starts a merge of the held commit with the conflict. The user finishes it like any merge.
func (s *Session) ResolveConflict(ctx context.Context, r airlock.Record) error {
	l := s.landing(r)
	defer l.engine.Close()
	before, err := ledger.TotalLanded(s.Store.Dir(r.ID))
	if err != nil {
		return err
	}
	var o ledger.Outcome
	if !s.Dry {
		if o, err = l.drain(ctx, promote.Options{Unchecked: true, Spared: true}); err != nil {
			return err
		}
	}
	commit, merging, err := l.engine.Resolve(ctx)
	if errors.Is(err, promote.ErrNoConflict) {
		s.Report.Say("%s", err)
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case s.Dry && merging:
		s.Report.Say("would merge %.12s into %s", commit, r.BranchName())
		return nil
	case s.Dry:
		s.Report.Say("would fast-forward %s to %.12s", r.BranchName(), commit)
		return nil
	case !merging:
		return l.land(ctx, promote.Options{}, before)
	}
	text, next := hold.Merging(ctx, l.engine.Repo, commit, r.BranchName(), o.Holds)
	return &environment.Refusal{Text: text, Next: next}
}

// decide records the user's decisions on commits that a rule holds. A dry run only checks them.
func (l landing) decide(ctx context.Context, p Promotion) error {
	if len(p.Accept) > 0 {
		accepted, err := l.engine.Accept(ctx, p.Accept, p.Commits...)
		if replaced, ok := errors.AsType[*decision.ReplacedError](err); ok {
			return &environment.Refusal{Text: replaced.Error(), Next: replaced.Next}
		}
		if err := adviseOnPending(err); err != nil {
			return err
		}
		for _, d := range accepted {
			l.tellDecided("accepted", "would accept", d.Commit, d.Subject)
		}
	}
	if len(p.Drop) > 0 {
		left, err := verdict.Record(ctx, l.engine, verdict.Request{Word: review.Reject, Names: p.Drop})
		if gone, ok := errors.AsType[*verdict.ReplacedError](err); ok {
			return &environment.Refusal{Text: gone.Error(), Next: []string{"git airlock diff " + gone.By, "git airlock promote --drop " + gone.By}}
		}
		if err := adviseOnPending(err); err != nil {
			return err
		}
		for _, d := range left {
			l.tellDecided("dropped", "would leave out", d.Commit, d.Subject)
		}
	}
	return nil
}

// tellDecided prints what was decided on a commit, or would be in a dry run.
func (l landing) tellDecided(what, would string, commit gitops.OID, subject string) {
	if l.session.Dry {
		what = would
	}
	l.session.Report.Say("%s: %.12s %s", what, commit, subject)
}

// adviseOnPending adds commands that list the held commits to an error.
func adviseOnPending(err error) error {
	if slices.ContainsFunc([]error{decision.ErrNotHeld, decision.ErrElsewhere, history.ErrNotPending, history.ErrAmbiguous}, func(of error) bool { return errors.Is(err, of) }) {
		return environment.Advise(err, "git airlock policy", "git airlock status")
	}
	return err
}

// addElsewhere returns a refusal if a rescued commit does not land because it is on another ref than main, and promoted otherwise: the
// result of promoting. An empty ref means that the rescue made no commit. from is the commit to promote, empty for that of main.
func (l landing) addElsewhere(ctx context.Context, ref, from string, promoted error) error {
	var held *environment.Refusal
	if ref == "" || ref == inner.Main || promoted != nil && !errors.As(promoted, &held) {
		return promoted
	}
	state, unread := l.engine.State(ctx)
	if err := TellUnread(ctx, state, unread, l.session.Report); err != nil {
		return err
	}
	if unread != nil && from == "" { // only the number of commits is not known
		state.OtherRefs = []hold.OtherRef{{Ref: gitops.Text(ref).String(), Name: ref}}
	}
	i := slices.IndexFunc(state.OtherRefs, func(w hold.OtherRef) bool { return w.Name == ref })
	if i < 0 { // not every ref is listed if there are many
		i = slices.IndexFunc(state.OtherRefs, func(w hold.OtherRef) bool { return w.Name == "" })
	}
	if i < 0 {
		return promoted // it has landed, with --from
	}
	if held != nil {
		l.session.Report.Say("%s", held.Text)
		l.session.Report.Hint(held.Next...)
	}
	w := state.OtherRefs[i]
	text := fmt.Sprintf("the agent's uncommitted changes are now on %s, which does not land by itself", w.Ref)
	if w.Commits > 0 {
		text += ": " + words.Count(w.Commits, "commit")
	}
	return &environment.Refusal{Text: text,
		Next: ledger.WithStart([]string{hold.Merge(w.Name, state.Operation)}, l.runs())}
}

// checker runs airlock.check for the engine of an airlock.
type checker struct {
	runner checking.Runner
	record airlock.Record
}

func (s *Session) checker(r airlock.Record) checker {
	return checker{checking.Runner{Prisons: s.Prisons(), Config: s.Config, Now: s.Now}, r}
}

// System implements [promote.Checker].
func (c checker) System(ctx context.Context) (string, error) { return c.runner.System(ctx, c.record) }

// Run implements [promote.Checker]. It reads the user's settings again, because they may have changed since the daemon began.
func (c checker) Run(ctx context.Context, w checks.Wanted) (found checks.Result, err error) {
	if c.runner.Config, err = c.runner.Prisons.Repo.Config(ctx); err != nil {
		return found, err
	}
	c.runner.Prisons.Config = c.runner.Config
	return c.runner.Run(ctx, c.record, w.Check, w.Commit, false, nil)
}
