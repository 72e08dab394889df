package decision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/words"
)

var (
	// ErrNotHeld reports that the rule which the user wants to accept holds no waiting commit.
	ErrNotHeld = errors.New("nothing that waits is held by it")
	// ErrElsewhere reports that the rule which the user wants to accept holds none of the named commits.
	ErrElsewhere = errors.New("it holds none of the named commits")
)

// ReplacedError reports that a commit waits no longer, because the agent has replaced it. The user has not seen the new one.
type ReplacedError struct {
	text string
	Next []string // commands that show and accept the commits that the rules hold now
}

func (e *ReplacedError) Error() string { return e.text }

// Acceptances is the user's decision that held commits pass some rules.
type Acceptances struct {
	Rules []policy.Acceptance
	// Names are those of the commits. Each is a revision that git resolves to a pending commit or to a former one of it, or at least
	// seven digits of an inner commit. Without names, all commits pass that the rules hold now.
	Names []string
	At    time.Time
}

// Add returns the decisions with the acceptances, and the results of the commits that pass. Later commits are held again. The error is
// a [*ReplacedError], or wraps [ErrNotHeld], [ErrElsewhere], [history.ErrNotPending] or [history.ErrAmbiguous].
func (a Acceptances) Add(ctx context.Context, repo *gitops.Repository, l *ledger.Ledger, results *ledger.GateResults, d ledger.Decisions) (ledger.Decisions, []ledger.GateResult, error) {
	among, err := a.named(ctx, repo, l, results, d)
	if err != nil {
		return d, nil, err
	}
	var passed []ledger.GateResult
	d.Accepted = slices.Clone(d.Accepted)
	for _, rule := range a.Rules {
		entry := ledger.Accepted{Acceptance: rule, At: ledger.Timestamp(a.At)}
		for _, t := range among {
			v := results.Last(t.Outer)
			if !holds(v, rule) {
				continue
			}
			entry.Commits = append(entry.Commits, t.Inner)
			if !slices.ContainsFunc(passed, func(p ledger.GateResult) bool { return p.Commit == v.Commit }) {
				passed = append(passed, *v)
			}
		}
		switch {
		case len(entry.Commits) > 0:
		case len(a.Names) > 0:
			return d, nil, fmt.Errorf("%q: %w", gitops.Text(rule.String()), ErrElsewhere)
		default:
			return d, nil, fmt.Errorf("%q: %w", gitops.Text(rule.String()), ErrNotHeld)
		}
		d.Accepted = append(d.Accepted, entry)
	}
	return d, passed, nil
}

// holds reports whether a commit has a finding that holds it and that the acceptance covers.
func holds(v *ledger.GateResult, rule policy.Acceptance) bool {
	return v != nil && slices.ContainsFunc(v.Findings, func(f policy.Finding) bool { return f.Action == policy.Hold && f.Covers(rule) })
}

// named returns the pending commits with the names, or all pending commits if there are no names.
func (a Acceptances) named(ctx context.Context, repo *gitops.Repository, l *ledger.Ledger, results *ledger.GateResults, d ledger.Decisions) (found []ledger.Pair, err error) {
	if len(a.Names) == 0 {
		return l.Tail, nil
	}
	replaced := ""
	for _, name := range a.Names {
		revision, _ := repo.Commit(ctx, name)
		pairs, former := pending(l, name, revision), l.Former(revision)
		switch {
		case len(pairs) > 0 && slices.ContainsFunc(pairs, func(p ledger.Pair) bool { return p.Outer != pairs[0].Outer }):
			return nil, fmt.Errorf("commit %q: %w", gitops.Text(name), history.ErrAmbiguous)
		case len(pairs) > 0:
			found = append(found, pairs...)
		case former != "" && !l.Has(former) && d.DropOf(former) == nil:
			replaced = name
		default:
			return nil, fmt.Errorf("commit %q: %w", gitops.Text(name), history.ErrNotPending)
		}
	}
	if replaced != "" {
		return nil, a.replaced(replaced, found, l, results)
	}
	return found, nil
}

// pending returns the pending commits that a name stands for. There are several with one outer commit if the inner ones differ only in what
// does not land.
func pending(l *ledger.Ledger, name string, revision gitops.OID) (found []ledger.Pair) {
	now := l.Now(revision)
	for _, t := range l.Tail {
		if t.Outer == now || history.Abbreviates(name, t.Inner) {
			found = append(found, t)
		}
	}
	return found
}

// maxNamed bounds the number of commits in a command.
const maxNamed = 5

// replaced returns the error for the name of a commit that waits no longer. others are the commits with the other names.
func (a Acceptances) replaced(name string, others []ledger.Pair, l *ledger.Ledger, results *ledger.GateResults) error {
	var now []ledger.GateResult
	var ids []gitops.OID
	for _, t := range l.Tail {
		v := results.Last(t.Outer)
		if slices.ContainsFunc(a.Rules, func(rule policy.Acceptance) bool { return holds(v, rule) }) && !slices.Contains(ids, v.Commit) {
			ids = append(ids, v.Commit)
			if !slices.ContainsFunc(others, func(o ledger.Pair) bool { return o.Outer == t.Outer }) {
				now = append(now, *v)
			}
		}
	}
	e := &ReplacedError{fmt.Sprintf("commit %q was replaced", gitops.Text(name)), []string{"git airlock policy", "git airlock status"}}
	switch {
	case len(now) == 0:
		e.text += ", and the rule holds no other commit now"
	case len(ids) > maxNamed:
		e.text += ", and the rule holds " + words.Count(len(now), "other commit") + " now"
	default:
		e.text += "; held now:"
		show := "git show"
		for _, v := range now {
			e.text += fmt.Sprintf(" %.12s (%s)", v.Commit, words.Shorten(v.Subject, subjectLetters))
			show += fmt.Sprintf(" %.12s", v.Commit)
		}
		e.Next = []string{show, hold.Accept(a.Rules, ids...)}
	}
	return e
}
